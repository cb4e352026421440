// SPDX-License-Identifier: MIT
// Writes $DOC as $F by os.WriteFile, while other threads run.
package main

import (
	"log"
	"os"
	"runtime"
)

func main() {
	for i := 0; i < 4; i++ {
		go func() {
			runtime.LockOSThread()
			select {}
		}()
	}
	text, err := os.ReadFile(os.Getenv("DOC"))
	if err == nil {
		err = os.WriteFile(os.Getenv("F"), text, 0o644)
	}
	if err != nil {
		log.Fatal(err)
	}
}
