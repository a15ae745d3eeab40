// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/platform/host"
)

var _ machine.Dialer = (*Provider)(nil)

// DialInside implements [machine.Dialer].
func (p *Provider) DialInside(ctx context.Context, id, network, address string) (net.Conn, error) {
	pid, running, err := p.find(id)
	if err != nil {
		return nil, err
	}
	if !running {
		return nil, fmt.Errorf("machine %s does not run", id)
	}
	namespace, err := os.Open("/proc/" + strconv.Itoa(pid) + "/ns/net")
	if err != nil {
		return nil, fmt.Errorf("opening the network of machine %s: %w", id, err)
	}
	defer func() { _ = namespace.Close() }()
	var connection net.Conn
	err = host.InNetwork(namespace, func() error {
		// One address and no fallback: the dialer makes its socket on this very thread.
		var err error
		connection, err = (&net.Dialer{FallbackDelay: -1}).DialContext(ctx, network, address)
		return err
	})
	return connection, err
}
