// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"syscall"
	"time"
)

// restartInterval is how often the agent looks whether somebody wants the kubelet restarted. A stat costs a
// microsecond.
const restartInterval = 200 * time.Millisecond

// answerRestarts restarts the kubelet whenever a file asks for it, and removes the file: see nodecerts.RestartRequest.
// It must be root's own and nobody else's to write.
func answerRestarts(ctx context.Context, path string, log *slog.Logger, restart func()) {
	ticker := time.NewTicker(restartInterval)
	defer ticker.Stop()
	refused := false
	for {
		switch info, err := os.Lstat(path); {
		case err != nil: // nobody asks
			refused = false
		case !rootsOwn(info):
			if !refused {
				log.Error("a request to restart the kubelet is refused: it must be a file of root's that nobody else can write", "path", path)
			}
			refused = true
		default:
			log.Info("the kubelet is to be restarted, as asked", "path", path)
			restart()
			if err := os.Remove(path); err != nil {
				log.Error("cannot remove the request to restart the kubelet", "error", err)
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func rootsOwn(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == 0 && info.Mode().IsRegular() && info.Mode().Perm()&0o022 == 0
}
