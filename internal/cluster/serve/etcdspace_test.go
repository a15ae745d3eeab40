// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"muster.dev/muster/internal/plane/etcdspace"
)

// The command that the log names frees the etcd that has the alarm, not a cluster's.
func TestManagementSpaceWarning(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	warnOfManagementSpace(slog.New(slog.NewTextHandler(&log, nil)))(etcdspace.Space{Size: 2 << 30, Quota: 2 << 30, NoSpace: true})
	if said := log.String(); !strings.Contains(said, "`muster defragment --management`") || strings.Contains(said, "`muster defragment`") || !strings.Contains(said, "2048 MiB") {
		t.Error(said)
	}
}
