// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"context"
	"errors"
	"strings"
	"testing"

	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/render"
)

// A configuration that the kubelet would refuse is refused before anything on the host is changed, its disks among
// that. Notes are told.
func TestJoinIsValidatedBeforeAnythingChanges(t *testing.T) {
	w := newWorld(t)
	r := w.request()
	r.Storage = func(context.Context, func(string)) error { t.Error("disks were prepared"); return nil }
	h := w.host()
	h.Validate = func(_ context.Context, spec nodeconfig.Spec, self Self, files []render.File) ([]string, error) {
		if spec.Join.NodeName != nodeName || self.Name != nodeName || len(files) == 0 {
			t.Errorf("asked about %s with %d files", self.Name, len(files))
		}
		return []string{"it is migrated"}, errors.New("no such feature gate")
	}
	before := w.tree()
	if _, err := h.Join(t.Context(), r); err == nil || !strings.Contains(err.Error(), "no such feature gate") {
		t.Errorf("got %v", err)
	}
	compare(t, "the host", before, w.tree())
	if said := w.said(); !strings.Contains(said, "config warning: it is migrated\n") {
		t.Errorf("said:\n%s", said)
	}
}
