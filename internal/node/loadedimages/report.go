// SPDX-License-Identifier: Apache-2.0

package loadedimages

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/atomicfile"
	"muster.dev/muster/internal/platform/termsafe"
)

// ReportPath is where a machine's report is, below the root of its disk.
const ReportPath = "var/lib/muster/loaded-images"

const (
	maxReport  = 4096 // bytes
	maxMessage = 1000
)

// Report is how far a machine is with the images of its cluster.
type Report struct {
	// Version of the index that the machine has taken over; empty before the first.
	Version string `json:"version,omitempty"`
	// Failure is what keeps it from the newest index; it tries again.
	Failure string `json:"failure,omitempty"`
}

// Write writes a machine's report to a file. It is made anew at every boot, so the disk need not have it.
func (r Report) Write(path string) error {
	if len(r.Failure) > maxMessage {
		r.Failure = strings.ToValidUTF8(r.Failure[:maxMessage], "")
	}
	content, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("writing the report about images: %w", err)
	}
	return atomicfile.Replace(path, append(content, '\n'), 0o600)
}

// Forget removes the report of an earlier boot.
func Forget(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the report about images: %w", err)
	}
	return nil
}

// ReadReport reads the report on a machine's disk. Returns false unless a regular file of at most maxReport bytes is
// there and holds a report. It never waits and follows no link out of the disk, whatever the machine's root put there.
func ReadReport(disk *os.Root) (Report, bool) {
	file, err := disk.OpenFile(ReportPath, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return Report{}, false
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > maxReport {
		return Report{}, false
	}
	content, err := io.ReadAll(io.LimitReader(file, maxReport))
	if err != nil {
		return Report{}, false
	}
	var r Report
	if err := json.Unmarshal(content, &r); err != nil {
		return Report{}, false
	}
	r.Version, r.Failure = termsafe.Line(r.Version), termsafe.Line(r.Failure)
	return r, true
}
