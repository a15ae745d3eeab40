// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

// firstBytes is how much of a block device is read and written: one block of every device.
const firstBytes = 4096

// disk prints how large a block device is and the line that it begins with. A line that is to be written first is on
// the disk when it is printed.
func disk(stdout io.Writer, args []string) error {
	flags := flag.NewFlagSet("disk", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	text := flags.String("write", "", "")
	if err := flags.Parse(args); err != nil || flags.NArg() != 1 || len(*text) >= firstBytes {
		return errUsage
	}
	mode := os.O_RDONLY
	if *text != "" {
		mode = os.O_RDWR
	}
	file, err := os.OpenFile(flags.Arg(0), mode, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	first := make([]byte, firstBytes)
	if *text != "" {
		copy(first, *text+"\n")
		if _, err := file.WriteAt(first, 0); err != nil {
			return err
		}
		if err := file.Sync(); err != nil {
			return err
		}
	}
	if _, err := file.ReadAt(first, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	line, _, _ := bytes.Cut(first, []byte{'\n'})
	_, err = fmt.Fprintf(stdout, "%d %s\n", size, bytes.Trim(line, "\x00"))
	return err
}
