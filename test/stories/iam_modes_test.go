// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/internal/plane/runner"
)

// TestAuthenticationModes takes a cluster from aws-auth alone to access entries alone, with a machine and people in it
// all the time.
//
//story:about iam/authenticator iam/identity cluster/clusteraccess
func TestAuthenticationModes(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	m := &modes{file: filepath.Join(filepath.Dir(i.kubeconfig), "muster.yaml")}
	m.write(t, "CONFIG_MAP")
	i.muster("up", "-f", m.file, "--timeout", "60s")
	i.ready()
	w := newIAM(t, i)
	m.bob, m.carol = w.user("bob"), w.user("carol")
	for _, step := range []struct {
		name string
		run  func(*iam)
	}{
		{"CONFIG_MAP asks aws-auth and no access entries", m.configMap},
		{"API_AND_CONFIG_MAP asks both", m.both},
		{"API asks access entries only", m.api},
		{"there is no way back", m.noWayBack},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(w.step(t)) }) {
			return
		}
	}
}

// modes is the cluster's file; bob is in aws-auth, and carol has an access entry.
type modes struct {
	file       string
	bob, carol keys
}

func (m *modes) write(t *testing.T, mode string) {
	t.Helper()
	content := `apiVersion: muster.dev/v1alpha1
kind: Cluster
metadata: {name: muster}
spec: {accessConfig: {authenticationMode: ` + mode + `}}
---
apiVersion: muster.dev/v1alpha1
kind: NodeGroup
metadata: {name: default}
spec: {scalingConfig: {desiredSize: 1}}
`
	if err := os.WriteFile(m.file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// goTo changes the mode, and waits until the authenticator is one that has it. Everybody else goes on.
func (m *modes) goTo(w *iam, mode string) {
	w.t.Helper()
	old := w.processes()
	m.write(w.t, mode)
	w.muster("up", "-f", m.file, "--timeout", "60s")
	w.eventually("the authenticator has the mode "+mode, func() error {
		for _, c := range must(w.status()).Clusters[0].Components {
			if c.Name == "authenticator" && (c.State != runner.Ready || c.PID == old["authenticator"].PID) {
				return fmt.Errorf("%s is %s: %s", c.Name, c.State, c.Message)
			}
		}
		recorded, err := w.kubectl("-n", "muster-system", "get", "configmap", "muster-authenticator", "-o", "jsonpath={.data.authenticationMode}")
		if err == nil && recorded != mode {
			err = fmt.Errorf("%s is recorded", recorded)
		}
		return err
	})
	for _, name := range []string{"kube-apiserver", "etcd", "kube-scheduler"} {
		if now := w.processes()[name]; now.PID != old[name].PID {
			w.t.Errorf("%s was restarted", name)
		}
	}
	w.machineStays()
}

func must[T any](v T, _ error) T { return v }

// machineStays sees that the machine is let in now, and that its node is Ready.
func (w *iam) machineStays() {
	w.t.Helper()
	w.becomes(w.machineKeys(pageMachine, "muster-node-muster"), "system:node:"+nodeAt(pageMachine))
	w.nodeIsReady(nodeAt(pageMachine))
}

func (m *modes) configMap(w *iam) {
	w.machineStays()
	w.becomes(w.creator(), creatorARN)
	w.apply(`apiVersion: v1
kind: ConfigMap
metadata: {namespace: kube-system, name: aws-auth}
data:
  mapUsers: |
    - userarn: arn:aws:iam::` + iamAccount + `:user/bob
      username: bob
      groups: [developers]
`)
	w.apply(`apiVersion: access.muster.dev/v1alpha1
kind: AccessEntry
metadata: {name: carol}
spec: {principalARN: "arn:aws:iam::` + iamAccount + `:user/carol", username: carol}
`)
	w.becomes(m.bob, "bob")
	w.refused("carol, who has an access entry, is refused", w.token(m.carol, "muster"), 403, "mode")
	out, _, err := w.try("auth", "check", "--mode", "CONFIG_MAP", "arn:aws:iam::"+iamAccount+":user/carol")
	if err == nil || !strings.Contains(out, "the authentication mode CONFIG_MAP does not ask this source") {
		w.t.Errorf("muster auth check says (%v):\n%s", err, out)
	}
}

func (m *modes) both(w *iam) {
	m.goTo(w, "API_AND_CONFIG_MAP")
	w.becomes(m.bob, "bob")
	w.becomes(m.carol, "carol")
	w.becomes(w.creator(), creatorARN)
}

func (m *modes) api(w *iam) {
	m.goTo(w, "API")
	w.becomes(m.carol, "carol")
	w.becomes(w.creator(), creatorARN)
	why := w.refused("bob, who is in aws-auth alone, is refused", w.token(m.bob, "muster"), 403, "mode")
	if !strings.Contains(why.Fix, "make an access entry") {
		w.t.Errorf("the authenticator says %+v", why)
	}
}

// noWayBack is told so at once, and the cluster goes on as it is.
func (m *modes) noWayBack(w *iam) {
	m.write(w.t, "API_AND_CONFIG_MAP")
	out, talk, err := w.try("up", "-f", m.file, "--timeout", "10s")
	if err == nil || !strings.Contains(talk, "authenticationMode") || !strings.Contains(talk, "cannot go back") {
		w.t.Errorf("muster up goes back (%v):\n%s%s", err, out, talk)
	}
	w.t.Logf("muster up says: %s", talk)
	if _, err := w.kubectl("--context=muster-management", "patch", "-n=muster", "cluster", "muster", "--type=merge", "-p", `{"spec":{"accessConfig":{"authenticationMode":"CONFIG_MAP"}}}`); err == nil || !strings.Contains(err.Error(), "one way") {
		w.t.Errorf("kubectl goes back: %v", err)
	}
	w.becomes(m.carol, "carol")
	if code, user, _, err := w.review(w.t.Context(), w.token(m.bob, "muster")); err != nil || code != 403 {
		w.t.Errorf("bob is %q, %d: %v", user.Username, code, errors.Join(err))
	}
	w.machineStays()
}
