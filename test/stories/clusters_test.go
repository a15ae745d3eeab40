// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/supervise"
)

// TestTwoClusters is the tale of two clusters in one VPC: made by the command line, strangers to each other but for
// what a rule lets their pods do, as SECURITY.md has it, and one of them killed and deleted, while the other notices
// nothing.
//
//story:about cluster/serve cluster/clustercontroller machine/networkrecord network/clusternetwork network/vpc plane/webhookproxy iam/authenticator
func TestTwoClusters(t *testing.T) {
	i := newInstallation(t)
	i.muster("up", "--nodes", "2", "--timeout", "3m")
	side{i, "muster"}.startNeighbours()
	i.mustKubectl("--context", "muster", "-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=120s")
	before := takeSnapshot(t, i.dir) // with all that the first cluster runs

	out, talk := i.muster("create", "cluster", "blue", "--nodes", "1", "--wait", "--timeout", "3m")
	if out != "cluster.muster.dev/blue created\nnodegroup.muster.dev/default created\n" || !strings.Contains(talk, "Try: kubectl --context blue get nodes") {
		t.Errorf("printed %q and %q", out, talk)
	}
	if out, _ := i.muster("create", "cluster", "blue", "--nodes", "1"); out != "cluster.muster.dev/blue unchanged\nnodegroup.muster.dev/default unchanged\n" {
		t.Errorf("made again, it says %q", out)
	}
	muster, blue := side{i, "muster"}, side{i, "blue"}
	for s, want := range map[side]int{muster: 2, blue: 1} {
		if nodes := strings.Fields(i.mustKubectl("--context", s.cluster, "get", "nodes", "-o", "name")); len(nodes) != want {
			t.Errorf("cluster %s has the nodes %v", s.cluster, nodes)
		}
		if nodes, _ := i.muster("get", "nodes", "--cluster", s.cluster, "--no-headers"); strings.Count(nodes, "\n") != want {
			t.Errorf("muster shows of cluster %s the nodes %s", s.cluster, nodes)
		}
	}
	for _, step := range []struct {
		name string
		run  func(*testing.T, side, side)
	}{{"doors", tryDoors}, {"killed", killedUnnoticed}} {
		t.Run(step.name, func(t *testing.T) {
			step.run(t, side{i.in(t), muster.cluster}, side{i.in(t), blue.cluster})
		})
	}
	stop := muster.keepTalking()
	deletedWithoutATrace(t, blue, before)
	stop()
	if _, err := i.kubectl("--context", "muster", "get", "--raw", "/readyz"); err != nil {
		t.Errorf("the other cluster: %v", err)
	}
}

// side is one of the clusters.
type side struct {
	*installation

	cluster string
}

// anonymous is the way to the API server, without a credential.
func (s side) anonymous() *rest.Config {
	s.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.dir.Cluster(s.cluster).Kubeconfig())
	if err != nil {
		s.t.Fatal(err)
	}
	anonymous := rest.AnonymousClientConfig(config)
	anonymous.QPS = -1
	return anonymous
}

// whoami asks the API server who the bearer of a token is.
func (s side) whoami(ctx context.Context, token string) (authenticationv1.UserInfo, error) {
	return (&iam{installation: s.installation, config: s.anonymous()}).whoami(ctx, token)
}

// usersAreStrangers: a user who is mapped in one cluster is nobody in the other, and a token names its cluster.
func usersAreStrangers(t *testing.T, muster, blue side) {
	w := newIAM(t, muster.installation)
	alice := w.user("alice")
	blue.apply(`{apiVersion: access.muster.dev/v1alpha1, kind: AccessEntry, metadata: {name: alice}, spec: {principalARN: "arn:aws:iam::`+iamAccount+
		`:user/alice", username: alice}}`, "--context=blue")
	blue.eventually("alice is let in", func() error {
		who, err := blue.whoami(t.Context(), w.token(alice, "blue"))
		if err == nil && who.Username != "alice" {
			err = fmt.Errorf("she is %q", who.Username)
		}
		return err
	})
	for _, test := range []struct {
		at    side
		named string
	}{{muster, "muster"}, {muster, "blue"}, {blue, "muster"}} {
		if who, err := test.at.whoami(t.Context(), w.token(alice, test.named)); err == nil {
			t.Errorf("with a token for %s, alice is %q at %s", test.named, who.Username, test.at.cluster)
		} else if !unauthorized(err) {
			t.Errorf("with a token for %s at %s: %v", test.named, test.at.cluster, err)
		}
	}
}

// credentialsAreWorthNothing tries every certificate and a service account's token of each cluster at the other's API
// server. Each is of use at home, or the test would show nothing.
func credentialsAreWorthNothing(t *testing.T, muster, blue side) {
	for _, pair := range [][2]side{{muster, blue}, {blue, muster}} {
		from, at := pair[0], pair[1]
		token := from.mustKubectl("--context", from.cluster, "create", "token", "default")
		if _, err := from.whoami(t.Context(), token); err != nil {
			t.Errorf("a token of %s at home: %v", from.cluster, err)
		}
		if who, err := at.whoami(t.Context(), token); err == nil {
			t.Errorf("a token of %s is %q at %s", from.cluster, who.Username, at.cluster)
		}
		paths, err := filepath.Glob(filepath.Join(from.dir.Cluster(from.cluster).PKI(), "issued", "*.pem"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("cluster %s has the certificates %v (%v)", from.cluster, paths, err)
		}
		good := 0
		for _, path := range paths {
			if from.accepts(path) == nil {
				good++
			}
			if err := at.accepts(path); err == nil {
				t.Errorf("%s of %s is let in at %s", filepath.Base(path), from.cluster, at.cluster)
			}
		}
		if good == 0 {
			t.Errorf("none of the %d certificates of %s is let in at home", len(paths), from.cluster)
		}
	}
}

// accepts asks the API server who the bearer of a client certificate is; nobody is an error.
func (s side) accepts(path string) error {
	s.t.Helper()
	certificate, err := tls.LoadX509KeyPair(path, path)
	if err != nil {
		return err // a key alone, or an authority
	}
	config := s.anonymous()
	trust, err := rest.TLSConfigFor(config)
	if err != nil {
		s.t.Fatal(err)
	}
	trust.Certificates = []tls.Certificate{certificate}
	transport := &http.Transport{TLSClientConfig: trust}
	defer transport.CloseIdleConnections()
	who, err := (&iam{installation: s.installation, config: config}).whoamiBy(s.t.Context(), &http.Client{Transport: transport, Timeout: 10 * time.Second})
	if err == nil && who.Username == "system:anonymous" {
		err = errors.New("it is anonymous")
	}
	return err
}

// processesOf lists the processes of the cluster.
func (s side) processesOf() []supervise.Process {
	s.t.Helper()
	found, err := supervise.Find(s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	return slices.DeleteFunc(found, func(p supervise.Process) bool {
		of, _ := component.SplitProcess(p.Name)
		return of != s.cluster
	})
}

// keepAsking has the API server answer a request each millisecond until the returned function is called, which says how
// many it answered, and what the first one that it did not answer came to.
func (s side) keepAsking() (end func() (asked int, err error)) {
	s.t.Helper()
	config := s.anonymous()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	type result struct {
		asked int
		err   error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		for r.err == nil {
			select {
			case <-ctx.Done():
				done <- r
				return
			case <-ticker.C:
			}
			request, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, config.Host+"/readyz", http.NoBody)
			if err != nil {
				r.err = err
				break
			}
			response, err := client.Do(request)
			r.asked, r.err = r.asked+1, err
			if err == nil {
				_ = response.Body.Close()
				if response.StatusCode != http.StatusOK {
					r.err = fmt.Errorf("status %s", response.Status)
				}
			}
		}
		done <- r
	}()
	return func() (int, error) {
		cancel()
		r := <-done
		return r.asked, r.err
	}
}

// killedUnnoticed ends every process of one cluster at once, while the other answers requests.
func killedUnnoticed(t *testing.T, muster, blue side) {
	end := muster.keepAsking()
	victims := blue.processesOf()
	if len(victims) < 5 {
		t.Fatalf("cluster blue has the processes %v", victims)
	}
	for _, p := range victims {
		if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Errorf("killing %s: %v", p.Name, err)
		}
	}
	took := blue.eventually("the killed cluster is back", func() error {
		_, err := blue.kubectl("--context", "blue", "get", "--raw", "/readyz")
		return err
	})
	blue.ready()
	asked, err := end()
	t.Logf("%d processes were killed, the API answered after %s; the other cluster answered %d requests meanwhile", len(victims), took.Round(time.Millisecond), asked)
	if err != nil || asked < 100 {
		t.Errorf("the other cluster: request %d: %v", asked, err)
	}
}

// deletedWithoutATrace deletes a cluster with its node group. The host and the account are then as they were before it
// was made.
func deletedWithoutATrace(t *testing.T, blue side, before snapshot) {
	t.Helper()
	if _, talk, err := blue.try("delete", "cluster", "blue"); err == nil || !strings.Contains(talk, `cluster "blue" has 1 node group (default): delete them first, or all together with --cascade`) {
		t.Errorf("with its node group: %v, %s", err, talk)
	}
	blue.mustKubectl("--context", "muster-management", "-n", "blue", "patch", "cluster", "blue", "--type=merge", "-p", `{"spec":{"deletionProtection":true}}`)
	for _, args := range [][]string{{"-n", "blue", "delete", "cluster", "blue", "--wait=false"}, {"delete", "namespace", "blue", "--wait=false"}} {
		if _, err := blue.kubectl(append([]string{"--context", "muster-management"}, args...)...); err == nil || !strings.Contains(err.Error(), "has deletion protection enabled") {
			t.Errorf("kubectl %v of a protected cluster: %v", args, err)
		}
	}
	blue.mustKubectl("--context", "muster-management", "-n", "blue", "patch", "cluster", "blue", "--type=merge", "-p", `{"spec":{"deletionProtection":false}}`)
	blue.muster("delete", "cluster", "blue", "--cascade", "--timeout", "3m")
	before.expectSame(t, blue.dir)
	if err := blue.asAsked("blue", "blue", false); err != nil {
		t.Error(err)
	}
	if contexts := blue.mustKubectl("config", "get-contexts", "-o", "name"); contexts != "muster\nmuster-management" {
		t.Errorf("the kubeconfig has the contexts %q", contexts)
	}
	if _, err := os.Stat(string(blue.dir.Cluster("blue"))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its directory: %v", err)
	}
}
