// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"os"
	"strings"
	"testing"

	"muster.dev/muster/internal/node/render"
)

// A file that somebody opened to others is closed by the next join, which says so. A file that somebody closed further
// stays as it is.
func TestJoinClosesWhatWasOpened(t *testing.T) {
	w := newWorld(t)
	mustRun(t, w.join)
	before := w.tree()
	if err := os.Chmod(w.at(render.PathKubeProxyConfig), 0o666); err != nil {
		t.Fatal(err)
	}
	mustRun(t, w.join)
	compare(t, "the host", before, w.tree())
	if !strings.Contains(w.said(), render.PathKubeProxyConfig+" can be read or written by more than should") {
		t.Errorf("said:\n%s", w.said())
	}
	if err := os.Chmod(w.at(render.PathKubeProxyConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	mustRun(t, w.join)
	if info, err := os.Stat(w.at(render.PathKubeProxyConfig)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
