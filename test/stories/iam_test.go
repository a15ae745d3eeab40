// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestIAMIdentity has machines and people come in by IAM, as on EKS: no machine is given a token, and nobody a key of
// the cluster.
//
//story:about iam
func TestIAMIdentity(t *testing.T) {
	if _, err := exec.LookPath("aws"); err != nil {
		t.Fatal("the AWS CLI is needed: tools/testneeds.sh installs it")
	}
	i := newInstallation(t)
	out, talk := i.muster("up", "--nodes", "1")
	t.Logf("muster up printed:\n%s%s", out, talk)
	i.ready()
	world := newIAM(t, i)
	p := &people{}
	for _, step := range []struct {
		name string
		run  func(*iam, *people)
	}{
		{"what the page shows is what happens", (*iam).page},
		{"machines join by role with no token anywhere", (*iam).machinesByRole},
		{"a machine asks STS and IAM with its own credentials, in the VPC", (*iam).machineAsks},
		{"the creator comes in by muster and by the AWS CLI", (*iam).creatorComesIn},
		{"a user whom no entry names is refused and told why", (*iam).unmappedUser},
		{"an access entry lets her edit one namespace", (*iam).entryLetsIn},
		{"she comes as an assumed role", (*iam).assumedRole},
		{"her key is made inactive and active again", (*iam).inactiveKey},
		{"the access entry of her role is taken away", (*iam).entryTakenAway},
		{"she is removed", (*iam).removedUser},
		{"a machine is refused and it is said which and why", (*iam).refusedMachine},
		{"the identity service is away", (*iam).serviceAway},
		{"the management plane is away and then a user is deleted", (*iam).managementAway},
		{"bad tokens by the thousand delay nobody", (*iam).flood},
		{"the authenticator is killed", (*iam).authenticatorKilled},
		{"the API server has forgotten whoever was refused", (*iam).forgotten},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(world.step(t), p) }) {
			return // the rest would tell of the same fault again
		}
	}
	i.ready()
}

// people are those whom one step makes and a later one uses.
type people struct {
	alice, bob keys
	session    keys   // hers, of a role
	kubectl    string // a kubeconfig that logs in by IAM, as whoever the environment says
	// later are waited for in the end, as the API server takes ten seconds to forget.
	later []func(*iam)
}

func (w *iam) forgotten(p *people) {
	for _, wait := range p.later {
		wait(w)
	}
}

// machinesByRole looks for tokens and finds none: each machine proves its role.
func (w *iam) machinesByRole(*people) {
	if left := w.mustKubectl("get", "secrets", "-A", "--field-selector", "type=bootstrap.kubernetes.io/token", "-o", "name"); left != "" {
		w.t.Errorf("there are bootstrap tokens: %s", left)
	}
	userData, ok := strings.CutSuffix(w.askMetadata(pageMachine, "user-data"), " 200")
	if !ok || !strings.Contains(userData, "instanceRole: true") || wholeBootstrapToken.MatchString(userData) {
		w.t.Errorf("the user data is not that of a machine that joins by role:\n%s", userData)
	}
	w.noTokenOnDisk()
	files, _ := w.muster("exec", pageMachine, "--", "sh", "-c", "ls /var/lib/kubelet/pki; ls /var/lib/kubelet/bootstrap-kubeconfig 2>&1; true")
	if strings.Contains(files, "kubelet-client") || !strings.Contains(files, "kubelet-server-current.pem") || !strings.Contains(files, "No such file") {
		w.t.Errorf("the kubelet has these:\n%s", files)
	}
	user := "system:node:" + nodeAt(pageMachine)
	w.eventually("the certificate controller approves the serving certificate", func() error {
		requests, err := w.kubectl("get", "csr", "-o", `jsonpath={range .items[*]}{.spec.signerName} {.spec.username} {.spec.uid} {.status.conditions[0].reason}{"\n"}{end}`)
		if err != nil {
			return err
		}
		for line := range strings.Lines(requests) {
			if fields := strings.Fields(line); fields[0] != "kubernetes.io/kubelet-serving" {
				return fmt.Errorf("somebody asked for more than serving certificates: %s", line)
			}
		}
		if want := "kubernetes.io/kubelet-serving " + user + " aws-iam-authenticator:" + iamAccount + ":AROA"; !strings.Contains(requests, want) || !strings.Contains(requests, " AutoApproved") {
			return fmt.Errorf("no request begins %q and is approved: %s", want, requests)
		}
		return nil
	})
	condition := first(w.muster("get", "machines", w.machineAt(pageMachine), "-o", "json"))
	if !strings.Contains(condition, `"reason": "Admitted"`) || !strings.Contains(condition, `"instanceProfile": "muster-node-muster"`) {
		w.t.Errorf("the machine does not say by what it was let in:\n%s", condition)
	}
	w.roleIsItsOwn()
}

func nodeAt(address string) string {
	return "ip-" + strings.ReplaceAll(address, ".", "-") + ".ec2.internal"
}

// creatorComesIn comes in twice: with muster's plugin, and as a kubeconfig says that `aws eks update-kubeconfig` has
// written.
func (w *iam) creatorComesIn(p *people) {
	p.kubectl = filepath.Join(filepath.Dir(w.kubeconfig), "iam.kubeconfig")
	w.muster("kubeconfig", "--iam", "--kubeconfig", p.kubectl)
	raw, err := os.ReadFile(p.kubectl)
	if err != nil || strings.Contains(string(raw), "client-key") || !strings.Contains(string(raw), "client.authentication.k8s.io/v1") {
		w.t.Errorf("the kubeconfig is not one that logs in by IAM (%v):\n%s", err, raw)
	}
	for name, call := range map[string]func() (string, error){
		"muster token get": func() (string, error) {
			return w.kubectlAs(nil, p.kubectl, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
		},
		"aws eks get-token": func() (string, error) {
			return w.kubectlAs(w.admin, w.likeEKS(), "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
		},
	} {
		if got, err := call(); err != nil || got != creatorARN {
			w.t.Errorf("by %s the creator is %q: %v", name, got, err)
		}
	}
	w.eventually("the creator's access policy is bound", func() error {
		out, err := w.kubectlAs(nil, p.kubectl, "auth", "can-i", "*", "*", "--all-namespaces")
		if err == nil && out != "yes" {
			err = fmt.Errorf("can-i says %q", out)
		}
		return err
	})
}

// kubectlAs runs kubectl with another kubeconfig, as somebody of IAM; nil for nobody in particular.
func (w *iam) kubectlAs(who []string, kubeconfig string, args ...string) (string, error) {
	return w.run(who, filepath.Join(w.bin, "kubectl"), append([]string{"--kubeconfig", kubeconfig}, args...)...)
}

// likeEKS writes a kubeconfig as `aws eks update-kubeconfig` does: its user calls the AWS CLI.
func (w *iam) likeEKS() string {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "eks.kubeconfig")
	const name = "arn:aws:eks:us-east-1:" + iamAccount + ":cluster/muster"
	content := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: %[1]s
clusters: [{name: "%[1]s", cluster: {server: "%[2]s", certificate-authority: "%[3]s"}}]
contexts: [{name: "%[1]s", context: {cluster: "%[1]s", user: "%[1]s"}}]
users:
- name: %[1]s
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1beta1
      args: [--region, us-east-1, eks, get-token, --cluster-name, muster, --output, json]
      command: aws
`, name, w.config.Host, filepath.Join(w.cluster().PKI(), "cluster", "ca.pem"))
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}
