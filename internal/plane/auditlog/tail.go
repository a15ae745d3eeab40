// SPDX-License-Identifier: Apache-2.0

package auditlog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// beginning is how much of a part tells it from others: it holds the id of the first line.
const beginning = 256

// Position is how far a log was read: in the part whose beginning has a checksum, up to an offset. Its zero value is the
// beginning of the oldest part. Parts are known by what they begin with, since files are renamed, and the numbers of
// removed ones are used again.
type Position struct {
	Part   string `json:"part"`
	Offset int64  `json:"offset"`
	// Before is the part before it: where the part is gone and this one is not, somebody emptied or removed the log.
	Before string `json:"before,omitempty"`
}

// Tail yields the whole lines of a log, and of its older parts, that follow a position, and returns the position after them.
// Each call opens the files anew. Lost says that the part which was read last is gone, and perhaps others after it: then
// reading begins with the oldest that is left and was not read. After an error the position is after the lines that were yielded.
func Tail(ctx context.Context, path string, from Position, yield func(line []byte)) (to Position, lost bool, err error) {
	found, err := parts(path)
	if err != nil {
		return from, false, err
	}
	sums := make([]string, len(found))
	for i, p := range found {
		if sums[i], err = sumOf(p); err != nil {
			return from, false, err
		}
	}
	at := 0
	if from.Part != "" {
		if at = slices.Index(sums, from.Part); at < 0 {
			at = 1 + slices.IndexFunc(sums, func(sum string) bool { return sum != "" && sum == from.Before })
			lost = at < len(sums) && sums[at] != ""
		}
	}
	to = from
	for i := at; i < len(found); i++ {
		if sums[i] == "" { // it has just been begun, or was renamed meanwhile
			return to, lost, nil
		}
		here := Position{Part: sums[i]}
		if i > 0 {
			here.Before = sums[i-1]
		}
		if sums[i] == from.Part {
			here.Offset = from.Offset
		}
		if here, err = tailPart(ctx, found[i], here, yield); here.Part == "" || err != nil {
			return to, lost, err
		}
		to = here
	}
	return to, lost, nil
}

// tailPart yields the lines of one part, unless it was renamed since it was listed: then the position is empty.
func tailPart(ctx context.Context, p part, from Position, yield func(line []byte)) (Position, error) {
	r, err := openPart(p)
	if r == nil {
		return Position{}, err
	}
	defer r.close()
	r.offset = from.Offset
	err = r.drain(ctx, func(line []byte) error {
		yield(line)
		return nil
	})
	from.Offset = r.offset
	return from, err
}

// openPart opens a part; nil if another file has its name by now.
func openPart(p part) (*reader, error) {
	r, err := openReader(p.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil //nolint:nilnil // it was renamed, and is looked for again
	}
	if err != nil {
		return nil, err
	}
	info, err := r.file.Stat()
	if err != nil || !os.SameFile(info, p.info) {
		r.close()
		return nil, err
	}
	return r, nil
}

// sumOf is the checksum of what a part begins with; "" if it has no more than that, or was renamed.
func sumOf(p part) (string, error) {
	r, err := openPart(p)
	if r == nil {
		return "", err
	}
	defer r.close()
	block := make([]byte, beginning)
	if _, err := r.file.ReadAt(block, 0); errors.Is(err, io.EOF) {
		return "", nil
	} else if err != nil {
		return "", fmt.Errorf("reading the audit log: %w", err)
	}
	sum := sha256.Sum256(block)
	return hex.EncodeToString(sum[:16]), nil
}
