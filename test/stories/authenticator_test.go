// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/internal/iam/ststoken"
	"muster.dev/muster/internal/iam/tokenverify/ststest"
	"muster.dev/muster/test/plane"
)

// installed is a plain upstream control plane into which the authenticator was installed as docs/authenticator.md says
// for static pods: what the pod would run runs as a process, with its directories elsewhere. STS is one that answers as
// AWS's does.
type installed struct {
	t       *testing.T
	plane   *plane.Plane
	bin     string
	dir     string
	address string // of the webhook
	health  string
	admin   string // kubeconfig
	sts     *ststest.STS
	process *plane.Process
}

// TestAuthenticatorInAnExistingCluster installs it in a cluster that is none of muster's. Somebody with a token of
// AWS's STS comes in.
//
//story:about iam/authenticator iam/authenticatorserver iam/authenticatorconfig iam/identity iam/tokenverify
func TestAuthenticatorInAnExistingCluster(t *testing.T) {
	t.Parallel()
	alice, bob, carol := ststest.User("alice", 1), ststest.User("bob", 2), ststest.User("carol", 3)
	a := newInstalled(t, alice, bob, carol)
	a.mustKubectl("apply", "-f", a.file("entries.yaml", `apiVersion: access.muster.dev/v1alpha1
kind: AccessEntry
metadata: {name: alice}
spec: {principalARN: "`+alice.ARN+`", username: alice, kubernetesGroups: [viewers]}
---
apiVersion: v1
kind: ConfigMap
metadata: {namespace: kube-system, name: aws-auth}
data:
  mapUsers: |
    - userarn: `+bob.ARN+`
      username: bob
    - userarn: arn:aws:iam::12:user/wrong
      username: wrong
`))
	a.eventually("the access entry is accepted", func() error {
		return a.says("True", a.admin, "get", "accessentry", "alice", "-o", `jsonpath={.status.conditions[?(@.type=="Accepted")].status}`)
	})
	const whoami = `jsonpath={.status.userInfo.username} {.status.userInfo.groups}`
	a.eventually("alice comes in by her access entry", func() error {
		return a.says(`alice ["viewers","system:authenticated"]`, a.as(alice), "auth", "whoami", "-o", whoami)
	})
	a.eventually("bob comes in by aws-auth", func() error {
		return a.says(`bob ["system:authenticated"]`, a.as(bob), "auth", "whoami", "-o", whoami)
	})
	if out, err := a.kubectl(a.as(alice), "get", "secrets", "-A"); err == nil || !strings.Contains(err.Error(), `User "alice" cannot list resource "secrets"`) {
		t.Errorf("alice may do what nobody has granted: %s, %v", out, err)
	}
	a.eventually("an Event tells of the entry that is wrong", func() error {
		out, err := a.kubectl(a.admin, "-n", "kube-system", "get", "events", "--field-selector", "involvedObject.name=aws-auth", "-o", "jsonpath={.items[*].message}")
		if err == nil && !strings.Contains(out, "mapUsers[1]") {
			err = fmt.Errorf("events: %q", out)
		}
		return err
	})
	// Of carol STS knows, and no entry; of the key of mallory it does not; and the token of eve is signed for another
	// cluster.
	mallory := ststest.User("mallory", 4)
	for who, token := range map[string]string{
		"carol": ststest.Token(t, carol, clusterName, time.Now()), "mallory": ststest.Token(t, mallory, clusterName, time.Now()),
		"eve": ststest.Token(t, alice, "another", time.Now()),
	} {
		if out, err := a.kubectl(a.kubeconfig(who, token), "auth", "whoami"); err == nil || !unauthorized(err) {
			t.Errorf("%s is let in: %s, %v", who, out, err)
		}
	}
	raw, err := os.ReadFile(a.process.Log)
	if err != nil {
		t.Fatal(err)
	}
	log := string(raw)
	for _, parts := range [][]string{{"rule=no-entry", "arn=" + carol.ARN}, {"access denied", "InvalidClientTokenId"}, {"rule=sts/SignatureDoesNotMatch", "claimed_access_key_id=" + alice.ID}} {
		if !anyLine(log, parts...) {
			t.Errorf("no line of the log has %q:\n%s", parts, log)
		}
	}
	if strings.Contains(log, "forbidden") || strings.Contains(log, ststoken.Prefix) {
		t.Errorf("the authenticator misses rights, or tells tokens:\n%s", log)
	}
	if mode, err := a.kubectl(a.admin, "-n", "muster-system", "get", "configmap", "muster-authenticator", "-o", "jsonpath={.data.authenticationMode}"); err != nil || mode != "API_AND_CONFIG_MAP" {
		t.Errorf("the mode is %q: %v", mode, err)
	}
}

// clusterName is what tokens are made for.
const clusterName = "blue"

// newInstalled follows the page.
func newInstalled(t *testing.T, known ...ststest.Key) *installed {
	t.Helper()
	a := &installed{t: t, bin: programs(t), dir: t.TempDir(), address: freeAddress(t), health: freeAddress(t), sts: ststest.New(t, known...)}
	pod := a.staticPod()
	a.run(append(pod.InitContainers[0].Command[1:], "--address", a.address, "--dir", a.dir, "--kubeconfig-out", filepath.Join(a.dir, "kubeconfig.yaml")))
	var err error
	if a.plane, err = plane.Start(t.Context(), plane.Config{Bin: a.bin, APIServer: []string{
		"--authentication-token-webhook-config-file=" + filepath.Join(a.dir, "kubeconfig.yaml"),
		"--authentication-token-webhook-version=v1", "--authentication-token-webhook-cache-ttl=10s",
	}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() && a.process != nil {
			t.Logf("the authenticator's log ends so:\n%s", a.process.Tail())
		}
		if err := a.plane.Close(); err != nil {
			t.Error(err)
		}
	})
	if a.admin, err = a.plane.Kubeconfig("kubernetes-admin", "system:masters"); err != nil {
		t.Fatal(err)
	}
	deploy := filepath.Join("..", "..", "deploy")
	a.mustKubectl("apply", "--server-side", "-f", filepath.Join(deploy, "charts", "muster-authenticator", "crds"), "-f", filepath.Join(deploy, "static", "authenticator-rbac.yaml"))
	own, err := a.plane.Kubeconfig("muster-authenticator") // as kubeadm kubeconfig user --client-name does
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(own, filepath.Join(a.dir, "cluster.kubeconfig")); err != nil {
		t.Fatal(err)
	}
	a.file("sts.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.sts.Certificate().Raw})))
	a.file("authenticator.yaml", fmt.Sprintf(`apiVersion: authenticator.muster.dev/v1alpha1
kind: AuthenticatorConfiguration
clusterID: %s
server: {bindAddress: "%s", healthAddress: "%s", stateDir: "%s"}
backend: sts
sts: {endpoints: {%s: "%s"}, ca: "%s"}
`, clusterName, a.address, a.health, a.dir, ststest.Host, a.sts.URL, filepath.Join(a.dir, "sts.pem")))
	command := pod.Containers[0].Command
	a.run(append(command[1:], "--check"))
	if a.process, err = a.plane.Run("authenticator", filepath.Join(a.bin, "muster"), command[1:]...); err != nil {
		t.Fatal(err)
	}
	a.eventually("it is ready", a.ready)
	return a
}

// staticPod is the one to install, with its directories here.
func (a *installed) staticPod() corev1.PodSpec {
	a.t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "deploy", "static", "authenticator-pod.yaml"))
	if err != nil {
		a.t.Fatal(err)
	}
	raw = bytes.ReplaceAll(raw, []byte("/etc/kubernetes/muster-authenticator"), []byte(a.dir))
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict(raw, &pod); err != nil {
		a.t.Fatal(err)
	}
	return pod.Spec
}

// run runs muster to its end.
func (a *installed) run(args []string) {
	a.t.Helper()
	cmd := exec.CommandContext(a.t.Context(), filepath.Join(a.bin, "muster"), args...)
	cmd.Env = append(os.Environ(), plane.Environment+"="+a.dir) // of the one that comes up with it
	if out, err := cmd.CombinedOutput(); err != nil {
		a.t.Fatalf("muster %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func (a *installed) ready() error {
	request, err := http.NewRequestWithContext(a.t.Context(), http.MethodGet, "http://"+a.health+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}
	return errors.Join(err, response.Body.Close())
}

// file writes one into the directory.
func (a *installed) file(name, content string) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// as is a kubeconfig with a new token of somebody.
func (a *installed) as(k ststest.Key) string {
	a.t.Helper()
	return a.kubeconfig(k.ID, ststest.Token(a.t, k, clusterName, time.Now()))
}

func (a *installed) kubeconfig(name, token string) string {
	a.t.Helper()
	return a.file(name+".kubeconfig", fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: a
clusters: [{name: a, cluster: {server: "%s", certificate-authority: "%s"}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
users: [{name: a, user: {tokenFile: "%s"}}]
`, a.plane.Server(), a.plane.CA(), a.file(name+".token", token)))
}

func (a *installed) kubectl(kubeconfig string, args ...string) (string, error) {
	out, err := a.plane.Command(a.t.Context(), kubeconfig, "kubectl", args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

func (a *installed) mustKubectl(args ...string) {
	a.t.Helper()
	if _, err := a.kubectl(a.admin, args...); err != nil {
		a.t.Fatal(err)
	}
}

// says reports whether kubectl prints this.
func (a *installed) says(want, kubeconfig string, args ...string) error {
	got, err := a.kubectl(kubeconfig, args...)
	if err == nil && got != want {
		err = fmt.Errorf("kubectl says %q, not %q", got, want)
	}
	return err
}

func (a *installed) eventually(what string, ask func() error) {
	a.t.Helper()
	(&installation{t: a.t}).eventually(what, ask)
}

// freeAddress is one that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}
