// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/component"
)

// TestLogsOnAFullDisk fills the disk while the audit log is kept, and kills the log store and the service on the full disk. Once
// there is room, each line that the audit log has is in the log store, once, and so are those that come then.
//
//story:about plane/logshipper plane/logstore plane/component cluster/serve
//story:needs logs
func TestLogsOnAFullDisk(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.onDiskOf("1500m")
	i.muster("up", "--provider", "simulated", "--nodes", "1")
	i.ready()
	l := newLogStore(t, i)
	l.switches(`{"types":["audit"],"enabled":true}`)
	l.allKept()

	filler := filepath.Join(string(i.dir), ".new-filler")
	written := make(chan struct{})
	go func() { // of which those that the API server takes are in its audit log
		for n := range 200 {
			_, _ = i.kubectl("create", "configmap", fmt.Sprintf("meanwhile-%d", n), "--request-timeout=2s")
			if t.Context().Err() != nil {
				break
			}
		}
		close(written)
	}()
	fill(t, filler)
	i.eventually("the cluster's etcd says that the disk is full", func() error {
		out, _, err := i.try("status", "-o", "json")
		if err == nil && !strings.Contains(out, `"diskFull": true`) {
			err = errors.New(out)
		}
		return err
	})
	for range 2 {
		i.kill(component.LogStore)
		<-time.After(3 * time.Second) // it starts again, and finds no room
	}
	i.kill("serve")
	<-time.After(3 * time.Second)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	i.eventually("writes are taken again", func() error {
		_, err := i.kubectl("create", "configmap", "after", "--request-timeout=5s")
		return err
	})
	<-written
	i.ready()
	i.mustKubectl("create", "configmap", "at-last")
	l.allKept()
	if n := l.count(`"objectRef.name":="at-last"`); n == 0 {
		t.Error("what is written afterwards is not kept")
	}
}
