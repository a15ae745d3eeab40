// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"os"

	"muster.dev/muster/internal/node/devicemount"
	"muster.dev/muster/internal/node/losetup"
	"muster.dev/muster/internal/platform/blockfs"
)

// answerMounts answers the machine's mounts for as long as the machine runs, shutting down included, if they are to be
// answered.
func (a *agent) answerMounts(ctx context.Context) {
	listener, ok := devicemount.Passed()
	if !ok {
		return
	}
	ask := func(ctx context.Context, device *os.File, fileSystem blockfs.Request) (*os.File, error) {
		return losetup.AskMount(ctx, losetup.Socket, device, fileSystem)
	}
	go func() {
		if err := devicemount.Serve(ctx, listener, ask, a.log); err != nil {
			a.log.Error("nothing can be mounted on this machine", "error", err)
		}
	}()
}
