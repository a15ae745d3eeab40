// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"io"
	"os"
)

// StandardInput is the name of a file that stands for standard input.
const StandardInput = "-"

// ReadInput reads a file, or in for StandardInput. An error says what was to be read, as in "reading the nodes: …"; it
// is one if there is more than most bytes.
func ReadInput(in io.Reader, name, what string, most int64) ([]byte, error) {
	if name == StandardInput {
		return readBounded(in, "standard input", what, most)
	}
	return ReadFile(name, what, most)
}

// ReadFile is ReadInput for files alone.
func ReadFile(name, what string, most int64) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", what, err)
	}
	defer func() { _ = file.Close() }() // it was only read
	return readBounded(file, name, what, most)
}

func readBounded(in io.Reader, name, what string, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(in, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", what, err)
	case int64(len(data)) > most:
		return nil, fmt.Errorf("reading %s: %s has more than %s", what, name, bytesText(most))
	}
	return data, nil
}

// bytesText writes a number of bytes in the largest unit of which it is a multiple.
func bytesText(n int64) string {
	switch {
	case n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
