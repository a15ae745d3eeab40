// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"os"
	"testing"
)

// halfClosed checks what keeps a connection through a Service known while one side of it has ended, and that root on a
// machine may look at its connections.
func halfClosed(t *testing.T, i *installation) {
	machines, err := os.ReadDir(i.dir.Machines())
	if err != nil {
		t.Fatal(err)
	}
	for _, machine := range machines {
		if !machine.IsDir() {
			continue
		}
		if got, _ := i.muster("exec", machine.Name(), "--", "grep", "-c", "tcp", "/proc/net/nf_conntrack"); got == "0\n" {
			t.Errorf("%s knows no connection", machine.Name())
		}
		for setting, want := range map[string]string{"close_wait": "3600\n", "established": "86400\n"} {
			if got, _ := i.muster("exec", machine.Name(), "--", "cat", "/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_"+setting); got != want {
				t.Errorf("%s forgets a connection that is in state %s after %q seconds, want %q", machine.Name(), setting, got, want)
			}
		}
	}
}
