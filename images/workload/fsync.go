// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// fsync measures how long a block takes from a program to the disk. Each is written after the last one, as by a log.
func fsync(stdout io.Writer, args []string) error {
	flags := flag.NewFlagSet("fsync", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	times := flags.Int("n", 1000, "")
	if err := flags.Parse(args); err != nil || flags.NArg() != 1 || *times < 1 {
		return errUsage
	}
	file, err := os.OpenFile(flags.Arg(0), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	block, took := make([]byte, firstBytes), make([]time.Duration, *times)
	for i := range took {
		begun := time.Now()
		if _, err := file.WriteAt(block, int64(i)*firstBytes); err != nil {
			return err
		}
		if err := file.Sync(); err != nil {
			return err
		}
		took[i] = time.Since(begun)
	}
	slices.Sort(took)
	_, err = fmt.Fprintf(stdout, "%d %d\n", took[len(took)/2].Microseconds(), took[len(took)*99/100].Microseconds())
	return err
}
