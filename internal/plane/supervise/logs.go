// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"
)

const (
	logLimit       = 32 << 20 // bytes, after which a log starts over; one older part is kept
	rotateInterval = 10 * time.Second
)

// rotateLogs keeps every log bounded. The processes hold their logs open and know nothing of it, so a log that is full
// is copied aside and cut to nothing; lines written in between are lost, which is better than a full disk.
func (s *Supervisor) rotateLogs(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(rotateInterval):
		}
		for _, spec := range s.specs() {
			if err := RotateLog(LogOf(s.cfg.State, spec), logLimit); err != nil {
				s.cfg.Log.Error("rotating log", "component", spec.Process(), "error", err)
			}
		}
	}
}

// RotateLog moves the content of a log that has reached the limit (bytes) to path.1, replacing the file there.
func RotateLog(path string, limit int64) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("rotating %s: %w", path, err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil || info.Size() < limit {
		return err
	}
	old, err := os.OpenFile(path+".1", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("rotating %s: %w", path, err)
	}
	_, err = io.Copy(old, file)
	if closeErr := old.Close(); err == nil {
		err = closeErr
	}
	if err != nil { // a full disk, most likely: then room matters more than the old part
		_ = os.Remove(path + ".1")
	}
	if truncateErr := file.Truncate(0); truncateErr != nil {
		return fmt.Errorf("rotating %s: %w", path, truncateErr)
	}
	return err
}
