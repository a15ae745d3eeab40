// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/mutualclient"
)

// TestManagementEtcdSpace raises the alarm NOSPACE of the management plane's etcd: it is told, nothing new can be made,
// clusters go on, and a command has it take writes again.
//
//story:about plane/etcdspace cluster/serve cluster/controlsocket
func TestManagementEtcdSpace(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.muster("up", "--provider", "simulated", "--nodes", "0", "--timeout", "3m")
	if said, _ := i.muster("defragment", "--management"); !strings.Contains(said, "A defragmentation is not worth its pause") {
		t.Errorf("a new one: %s", said)
	}

	pki := i.dir.PKI()
	store := authority.NewAccountStore(pki)
	client := mutualclient.New(filepath.Join(pki, authority.ManagementEtcd, "ca.pem"), store.Path(component.ManagementEtcd+"-probe"), "etcd", 0)
	var status struct {
		Header struct {
			MemberID string `json:"member_id"`
		}
	}
	endpoint := i.flagOf(component.ManagementEtcd, "advertise-client-urls")
	post := func(path, body string, into any) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint+path, bytes.NewReader([]byte(body)))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		raw, err := io.ReadAll(answer.Body)
		if err := errors.Join(err, json.Unmarshal(raw, into)); err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v", path, raw, err)
		}
	}
	post("/v3/maintenance/status", "{}", &status)
	post("/v3/maintenance/alarm", fmt.Sprintf(`{"action": "ACTIVATE", "memberID": %q, "alarm": "NOSPACE"}`, status.Header.MemberID), &struct{}{})

	i.eventually("the status tells of it", func() error {
		said, _ := i.muster("status")
		if !strings.Contains(said, "muster defragment --management") {
			return errors.New(said)
		}
		return nil
	})
	if said, err := i.kubectl(managementContext, "create", "namespace", "refused"); err == nil || !strings.Contains(said+err.Error(), "space exceeded") {
		t.Errorf("a write: %s, %v", said, err)
	}
	i.mustKubectl("--context", "muster", "create", "namespace", "goes-on")
	said, _ := i.muster("defragment", "--management")
	t.Log(said)
	if !strings.Contains(said, "the alarm NOSPACE is disarmed") {
		t.Errorf("it says %s", said)
	}
	i.mustKubectl(managementContext, "create", "namespace", "taken")
	i.eventually("the status tells of nothing", func() error {
		if said, _ := i.muster("status"); strings.Contains(said, "defragment") {
			return errors.New(said)
		}
		return nil
	})
}

// flagOf is the value of a flag of a component that runs.
func (i *installation) flagOf(component, flag string) string {
	i.t.Helper()
	for _, argument := range i.mustCommandLine(component) {
		if value, ok := strings.CutPrefix(argument, "--"+flag+"="); ok {
			return value
		}
	}
	i.t.Fatalf("%s has no flag --%s", component, flag)
	return ""
}
