// SPDX-License-Identifier: Apache-2.0

package planefront

import (
	"context"
	"fmt"
	"time"

	"muster.dev/muster/internal/plane/frontservers"
	"muster.dev/muster/internal/platform/watchfile"
)

// lookAgain is how often the file of servers is read even if nothing tells that it changed.
const lookAgain = 5 * time.Second

// servers is the file of servers.
func (f *Front) servers() watchfile.File {
	return watchfile.File{
		Path: f.config.Servers, What: "file of servers", Poll: lookAgain, Quiet: time.Millisecond, MaxSize: frontservers.MaxSize, Logger: f.config.Log,
	}
}

// follow takes the file of servers over whenever it changes, until the context ends. While it cannot be read the servers
// are as they were, and the log says so once.
func (f *Front) follow(ctx context.Context, file watchfile.File) {
	told := ""
	file.Run(ctx, func() {
		err := f.take(file)
		if err != nil && err.Error() != told {
			f.config.Log.Error("the file of servers is not used, and the servers stay", "error", err)
		}
		told = ""
		if err != nil {
			told = err.Error()
		}
	})
}

// take takes the file of servers over once.
func (f *Front) take(file watchfile.File) error {
	raw, err := file.Read()
	if err != nil {
		return fmt.Errorf("reading the file of servers: %w", err)
	}
	servers, err := frontservers.Read(raw)
	if err != nil {
		return err
	}
	f.pool.set(servers)
	f.lookNow()
	return nil
}
