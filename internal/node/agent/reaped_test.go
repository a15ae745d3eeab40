// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"
	"testing"

	"muster.dev/muster/internal/node/render"
)

// The tools that prepare disks are the agent's children, and its reaper takes the end of every child: none may be lost
// to it.
func TestToolsOfAMachineAreReapedOnce(t *testing.T) {
	a := newAgent(t)
	a.instance = render.Instance{ID: "i-0000000000000000a"}
	tool := a.pipeline().tool
	for range 200 {
		if said, err := tool(t.Context(), "echo", "said"); err != nil || said != "said\n" {
			t.Fatalf("said %q, %v", said, err)
		}
	}
	_, err := tool(t.Context(), "sh", "-c", "echo hidden; echo no such disk >&2; exit 3")
	if err == nil || !strings.Contains(err.Error(), "sh: exit status 3: no such disk") || strings.Contains(err.Error(), "hidden") {
		t.Errorf("one that fails: %v", err)
	}
	if _, err := tool(t.Context(), "no-such-program-anywhere"); err == nil || !strings.Contains(err.Error(), "no-such-program-anywhere") {
		t.Errorf("one that is not there: %v", err)
	}
	a.reaper.mutex.Lock()
	defer a.reaper.mutex.Unlock()
	if len(a.reaper.waiting) > 0 {
		t.Errorf("still waiting for %v", a.reaper.waiting)
	}
}
