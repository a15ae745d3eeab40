// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"net"
	"strings"
	"testing"
)

// listen takes a port for the time of the test.
func listen(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	address := listener.Addr().String()
	return address[strings.LastIndex(address, ":")+1:]
}
