// SPDX-License-Identifier: Apache-2.0

package nodecerts

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"
)

// deadlineMessage is what a kubelet logs at verbosity 2 when it has drawn the moment of the next rotation
// (client-go v0.36, util/certificate/certificate_manager.go, nextRotationDeadline). It publishes it nowhere else.
const deadlineMessage = `"Certificate rotation deadline determined" `

// maxLogLine is far more than that line has.
const maxLogLine = 64 << 10

// logTime is how a moment looks there: time.Time's own form.
const logTime = "2006-01-02 15:04:05.999999999 -0700 MST"

// deadline is one such line.
type deadline struct {
	signer              string
	expiration, instant time.Time
}

// parseDeadline reads a line of a kubelet's log, if it is one about that.
func parseDeadline(line string) (deadline, bool) {
	_, fields, ok := strings.Cut(line, deadlineMessage)
	if !ok {
		return deadline{}, false
	}
	d := deadline{signer: logField(fields, "logger")}
	var err error
	if d.expiration, err = time.Parse(logTime, logField(fields, "expiration")); err != nil {
		return deadline{}, false
	}
	if d.instant, err = time.Parse(logTime, logField(fields, "deadline")); err != nil {
		return deadline{}, false
	}
	return d, true
}

// logField is a value of klog's text form. The values that are looked for have no quotes in them.
func logField(fields, name string) string {
	_, rest, ok := strings.Cut(" "+fields, " "+name+`="`)
	if !ok {
		return ""
	}
	value, _, ok := strings.Cut(rest, `"`)
	if !ok {
		return ""
	}
	return value
}

// Drawn adds to reports the moments of rotation that a kubelet's log tells, the last for each certificate. A log that
// does not exist tells nothing.
func Drawn(reports []Report, path string) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the kubelet's log: %w", err)
	}
	defer func() { _ = file.Close() }()
	return drawn(reports, file)
}

func drawn(reports []Report, log io.Reader) error {
	lines := bufio.NewReaderSize(log, maxLogLine)
	for inside := false; ; {
		line, more, err := lines.ReadLine()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the kubelet's log: %w", err)
		}
		piece := inside || more // of a line that is far too long
		inside = more
		d, ok := parseDeadline(string(line))
		if piece || !ok {
			continue
		}
		for i := range reports {
			r := &reports[i]
			// A line about another certificate, or one that cannot be about this one, says nothing.
			if d.signer == r.Kind.SignerName() && d.expiration.Equal(r.NotAfter) && !d.instant.Before(r.NotBefore) && !d.instant.After(r.NotAfter) {
				r.Rotation.Drawn = d.instant.UTC()
			}
		}
	}
}
