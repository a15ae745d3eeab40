// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// countFile holds the numbers from 1 on, one a line, in a directory that is to keep them.
const countFile = "count"

// count appends the next number to the file of a directory again and again. A number is printed when it is on the disk,
// so each one that was printed must be there after whatever happened. It refuses to go on with a file in which one is
// missing.
func count(ctx context.Context, stdout io.Writer, dir string, pause time.Duration) error {
	last, whole, err := counted(dir)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(dir, countFile), os.O_CREATE|os.O_WRONLY, 0o644) //nolint:gosec // G302: pods of other users read it
	if err != nil {
		return err
	}
	defer file.Close()
	if err := file.Truncate(whole); err != nil { // of a number that was cut short
		return err
	}
	if _, err := file.Seek(whole, io.SeekStart); err != nil {
		return err
	}
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		last++
		if _, err := fmt.Fprintf(file, "%d\n", last); err != nil {
			return fmt.Errorf("writing %d: %w", last, err)
		}
		if err := file.Sync(); err != nil {
			return fmt.Errorf("writing %d: %w", last, err)
		}
		if _, err := fmt.Fprintln(stdout, last); err != nil {
			return err
		}
		if ctx.Err() != nil { // said before the tick that came while the disk was slow
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// counted reads the file of a directory: the last number, and the bytes up to its end. A last line without its end was
// never printed.
func counted(dir string) (last, whole int64, err error) {
	file, err := os.Open(filepath.Join(dir, countFile)) //nolint:gosec // G703: the directory is an argument
	if errors.Is(err, fs.ErrNotExist) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	defer file.Close()
	reader := bufio.NewReader(file)
	for {
		line, err := reader.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return last, whole, nil
		}
		if err != nil {
			return 0, 0, err
		}
		if line != strconv.FormatInt(last+1, 10)+"\n" {
			return 0, 0, fmt.Errorf("after %d comes %q: something is lost", last, line)
		}
		last, whole = last+1, whole+int64(len(line))
	}
}
