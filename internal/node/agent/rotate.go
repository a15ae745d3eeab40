// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// A log may grow to maxLog before it is put aside; one old one is kept.
const (
	maxLog         = 32 << 20
	rotateInterval = 15 * time.Second
)

// rotateLogs keeps the logs of the machine's programs small.
func (a *agent) rotateLogs(ctx context.Context) {
	for sleep(ctx, rotateInterval) {
		logs, err := filepath.Glob(filepath.Join(a.config.LogDir, "*.log"))
		if err != nil {
			a.log.Error("cannot list logs", "error", err)
			return
		}
		for _, path := range logs {
			if err := rotate(path, maxLog); err != nil {
				a.log.Error("cannot put log aside", "error", err)
			}
		}
	}
}

// rotate copies a log that has grown too large and empties it. Its writer has it open and appends, so the file itself
// must stay; lines written between the copy and the cut are lost.
func rotate(path string, limit int64) error {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() <= limit {
		return err
	}
	source, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("rotating log %s: %w", path, err)
	}
	defer func() { _ = source.Close() }()
	old, err := os.OpenFile(path+".1", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("rotating log %s: %w", path, err)
	}
	if err = old.Chmod(info.Mode().Perm()); err == nil {
		if owner, ok := info.Sys().(*syscall.Stat_t); ok { // who may read the log may read the old one
			err = old.Chown(int(owner.Uid), int(owner.Gid))
		}
	}
	if err != nil {
		_ = old.Close()
		return fmt.Errorf("rotating log %s: %w", path, err)
	}
	_, err = io.Copy(old, source)
	if closeErr := old.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("rotating log %s: %w", path, err)
	}
	if err := os.Truncate(path, 0); err != nil {
		return fmt.Errorf("rotating log %s: %w", path, err)
	}
	return nil
}
