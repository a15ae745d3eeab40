// SPDX-License-Identifier: Apache-2.0

package podidentityagent

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"
)

// probeTime is how long the agent of a machine may take to say that it is there.
const probeTime = 2 * time.Second

// Probe says why the agent does not answer; dial connects from the inside of the machine.
func Probe(ctx context.Context, dial func(ctx context.Context, network, address string) (net.Conn, error)) error {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	at := net.JoinHostPort(AddressIPv4, strconv.Itoa(Port))
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, "tcp4", at) },
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+AddressIPv4+HealthPath, http.NoBody)
	if err != nil {
		return fmt.Errorf("asking the pod identity agent: %w", err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("asking %s: %w", at, err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: something else has the port", at, response.Status)
	}
	return nil
}
