// SPDX-License-Identifier: MIT
// Writes $DOC as $F in the way that is asked for.
import java.io.FileWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;

class Write {
	public static void main(String[] args) throws Exception {
		Path from = Path.of(System.getenv("DOC")), to = Path.of(System.getenv("F"));

		switch (args[0]) {
		case "write":
			Files.write(to, Files.readAllBytes(from));
			break;
		case "copy":
			Files.copy(from, to, StandardCopyOption.REPLACE_EXISTING);
			break;
		case "writer":
			try (FileWriter out = new FileWriter(to.toFile())) {
				out.write(Files.readString(from));
			}
			break;
		case "print":
			System.out.print(Files.readString(from));
		}
	}
}
