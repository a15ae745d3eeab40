// SPDX-License-Identifier: Apache-2.0

package socketdir

import (
	"context"
	"fmt"
	"net"
	"os"
)

// ListenPrivate makes a unix socket that its owner alone can use, in place of a socket that a killed process left. The directory of the socket must be private,
// and no view shows it.
func ListenPrivate(ctx context.Context, path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("removing stale socket: %w", err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = listener.Close()
		return nil, err
	}
	return listener, nil
}
