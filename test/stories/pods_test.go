// SPDX-License-Identifier: Apache-2.0

//go:build soak

package stories

import (
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/iam/tokenverify/ststest"
	"muster.dev/muster/internal/platform/host"
)

// TestInstalledAsPods installs the certificate controller, the authenticator and the pod identity webhook in a cluster
// of kubeadm, as their pages say: the commands of the pages are run on a control plane node, with the image of `make
// image` and the manifests as they are; before that, those of Helm with the charts.
//
//story:about ./deploy certificates/certificatecontroller iam/authenticatorserver
func TestInstalledAsPods(t *testing.T) {
	k := newKubeadmCluster(t)
	k.checkout()
	k.programs()
	for _, step := range []struct {
		name string
		run  func(*kubeadmCluster)
	}{
		{"Helm lints the charts, and the API server takes what it makes of them", (*kubeadmCluster).lintCharts},
		{"Helm installs, upgrades and removes the certificate controller", (*kubeadmCluster).controllerByHelm},
		{"Helm installs, upgrades and removes the authenticator", (*kubeadmCluster).authenticatorByHelm},
		{"the certificate controller is installed as its page says", (*kubeadmCluster).installController},
		{"its pods have no more rights than they need", (*kubeadmCluster).controllerIsConfined},
		{"its metrics are for those who may read them", (*kubeadmCluster).controllerMetrics},
		{"a machine joins when the inventory knows it", (*kubeadmCluster).machineJoins},
		{"a replica that is killed or told to go is no loss", (*kubeadmCluster).replicaGoes},
		{"the authenticator is installed as its page says, as a DaemonSet and as a static pod", (*kubeadmCluster).installAuthenticator},
		{"another replica has taken over meanwhile", (*kubeadmCluster).anotherLeads},
		{"the pod identity webhook is installed as its page says", (*kubeadmCluster).installPodWebhook},
		{"only API servers may ask it", (*kubeadmCluster).strangersAskPodWebhook},
		{"it has no more rights than it needs", (*kubeadmCluster).podWebhookIsConfined},
		{"pods that are made while it is away", (*kubeadmCluster).podWebhookAway},
		{"its authority is thrown away", (*kubeadmCluster).podWebhookAuthorityGoes},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(k.in(t)) }) {
			return
		}
	}
}

// installedUnsteady are the lines of tools that are there or not, by how fast things go, by the host's control groups
// and its having no kube-proxy of kubeadm's.
var installedUnsteady = regexp.MustCompile(`(?m)^(Waiting for .*|time=.*level=warning.*|W\d{4} .*|\[(upgrade|patches|kubelet-start)\] .*)\n`)

func (k *kubeadmCluster) installController() {
	k.steps().follow(page{name: "install.md", least: 20, unsteady: installedUnsteady, there: func(line, _ string) (out string, err error) {
		if !strings.HasPrefix(line, "kubectl get certificatesigningrequests") {
			return k.line(line)
		}
		k.steps().eventually("the request is issued", func() error {
			if out, err = k.line(line); err == nil && !strings.Contains(out, "Issued") {
				err = errors.New(out)
			}
			return err
		})
		return out, err
	}})
}

// line runs one of a page.
func (k *kubeadmCluster) line(line string) (string, error) {
	out, err := k.try(line)
	return out + "\n", err
}

// steps are those of an installation that is none of muster's.
func (k *kubeadmCluster) steps() *installation { return &installation{t: k.t} }

// says waits until a command prints that.
func (k *kubeadmCluster) says(want, script string) time.Duration {
	k.t.Helper()
	return k.steps().eventually(script, func() error {
		out, err := k.try(script)
		if err == nil && out != want {
			err = fmt.Errorf("it says %q, not %q", out, want)
		}
		return err
	})
}

const controllerPods = "kubectl -n " + approverNamespace + " get pods -l app.kubernetes.io/name=" + approverName

func (k *kubeadmCluster) controllerIsConfined() {
	k.says("TrueTrue", controllerPods+` -o jsonpath='{.items[*].status.conditions[?(@.type=="Ready")].status}' | tr -d ' '`)
	may := func(what string) bool {
		_, err := k.try("kubectl auth can-i --quiet " + what + " --as system:serviceaccount:" + approverNamespace + ":" + approverName)
		return err == nil
	}
	for _, what := range []string{"watch csr", "update csr --subresource=approval", "update csr --subresource=status", "update configmaps -n muster-system"} {
		if !may(what) {
			k.t.Errorf("it may not %s", what)
		}
	}
	for _, what := range []string{"get secrets -n kube-system", "create csr", "create pods -n muster-system", "update nodes", "update configmaps -n kube-system", "create serviceaccounts/token -n muster-system"} {
		if may(what) {
			k.t.Errorf("it may %s", what)
		}
	}
	// Neither capabilities nor a way to them; system calls are filtered.
	status := k.run(`for pid in $(ps -C muster-certific -o pid=); do grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/$pid/status | tr -s '\t\n' ' '; done`)
	const confined = "CapEff: 0000000000000000 CapBnd: 0000000000000000 NoNewPrivs: 1 Seccomp: 2 "
	if status+" " != strings.Repeat(confined, 2) {
		k.t.Errorf("its processes are confined like this: %s", status)
	}
}

func (k *kubeadmCluster) controllerMetrics() {
	k.run("kubectl create serviceaccount prometheus; kubectl create clusterrolebinding prometheus --clusterrole=" + approverName + ":metrics-reader --serviceaccount=default:prometheus")
	ask := func(token, path string) string {
		out, _ := k.try(`for ip in $(` + controllerPods + ` -o jsonpath='{.items[*].status.podIP}'); do curl -sk -H "Authorization: Bearer ` + token + `" -w '\n%{http_code}\n' ` + path + ` | grep -xE 'muster_certificates_leader .|[0-9]{3}'; done | sort | tr '\n' ' '`)
		return strings.TrimSpace(out)
	}
	for what, c := range map[string]struct{ token, path, want string }{
		"health":                   {"none", "http://$ip:8081/healthz", "200 200"},
		"readiness":                {"none", "http://$ip:8081/readyz", "200 200"},
		"metrics":                  {"$(kubectl create token prometheus)", "https://$ip:9443/metrics", "200 200 muster_certificates_leader 0 muster_certificates_leader 1"},
		"metrics without a token":  {"none", "https://$ip:9443/metrics", "401 401"},
		"metrics without the role": {"$(kubectl create token default)", "https://$ip:9443/metrics", "403 403"},
	} {
		if out := ask(c.token, c.path); out != c.want {
			k.t.Errorf("%s: it says %q, not %q", what, out, c.want)
		}
	}
}

// ask asks for a machine's first certificate with a token of kubeadm that is good for that machine alone.
func (k *kubeadmCluster) ask(n int, name string) {
	k.t.Helper()
	id, node, _ := worker(n)
	token := k.run("kubeadm token create --groups system:bootstrappers:kubeadm:default-node-token,system:bootstrappers:muster:" + id)
	k.create(withToken(token), name, signerClient, "client auth", pkitest.Kubelet(k.t, node))
}

// create creates a request as whom that kubectl comes as.
func (k *kubeadmCluster) create(kubectl, name, signer, usage string, request []byte) {
	k.t.Helper()
	k.write("/root/"+name+".yaml", fmt.Sprintf(`apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: %s}
spec: {signerName: %s, request: %s, usages: [digital signature, %s]}
`, name, signer, base64.StdEncoding.EncodeToString(request), usage))
	k.run(kubectl + " create --validate=false -f /root/" + name + ".yaml")
}

// withToken is kubectl with a token and nothing else.
func withToken(token string) string {
	return "kubectl --kubeconfig=/dev/null --server=https://" + controlAddress + ":6443 --certificate-authority=/etc/kubernetes/pki/ca.crt --token=" + token
}

func stateOfRequest(name string) string {
	return "kubectl get csr " + name + ` -o jsonpath='{.status.conditions[?(@.type=="Approved")].reason} {.status.certificate}' | cut -c1-20`
}

const issuedInPod = "AutoApproved LS0tLS1"

func (k *kubeadmCluster) machineJoins() {
	k.ask(2, "early")
	k.says("CertificateWaiting Wait by rule bootstrap-machine", `kubectl get events --field-selector involvedObject.name=early -o jsonpath='{.items[0].reason} {.items[0].message}' | cut -d: -f1`)
	id, node, address := worker(2)
	k.run(fmt.Sprintf("printf -- '- {id: %s, nodeName: %s, addresses: [%s]}\\n' >>machines.yaml", id, node, address))
	k.run("kubectl -n " + approverNamespace + " create configmap muster-machines --from-file=machines.yaml --dry-run=client -o yaml | kubectl apply -f -")
	k.t.Logf("issued %s after the machine was put into the inventory", k.says(issuedInPod, stateOfRequest("early")))
	if life := k.run(`kubectl get csr early -o jsonpath='{.status.certificate}' | base64 -d | openssl x509 -noout -checkend 691200 || true`); life != "Certificate will expire" {
		k.t.Errorf("kube-controller-manager signed it: %s", life)
	}
}

const leader = "kubectl -n " + approverNamespace + " get lease " + approverName + " -o jsonpath='{.spec.holderIdentity}' | sed 's/_.*//'"

func (k *kubeadmCluster) replicaGoes() {
	was := k.run(leader)
	k.run(`kubectl -n ` + approverNamespace + ` delete pod --wait=false ` + was)
	k.ask(2, "handed-over")
	k.t.Logf("issued %s after the leader was told to go", k.says(issuedInPod, stateOfRequest("handed-over")).Round(time.Millisecond))
	was = k.run(leader)
	k.run(`ctr -n k8s.io tasks kill --signal SIGKILL $(kubectl -n ` + approverNamespace + ` get pod ` + was + ` -o jsonpath='{.status.containerStatuses[0].containerID}' | sed 's|containerd://||')`)
	k.ask(2, "killed")
}

// another leads when the Lease of the one that was killed has ended.
func (k *kubeadmCluster) anotherLeads() {
	k.says(issuedInPod, stateOfRequest("killed"))
	if logs := k.run(`kubectl -n ` + approverNamespace + ` logs --tail=-1 -l app.kubernetes.io/name=` + approverName); strings.Contains(logs, "forbidden") {
		k.t.Errorf("it misses rights:\n%s", logs)
	}
}

func (k *kubeadmCluster) installAuthenticator() {
	deploy := ststest.Session("deploy", "ci-17", 1)
	sts := k.sts(deploy)
	const settings = "sts: {endpoints: {" + ststest.Host + ": '%s'}, ca: /var/lib/muster-authenticator/sts.pem}\n"
	k.write("/var/lib/muster-authenticator/sts.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: sts.Certificate().Raw})))
	manifest, err := os.ReadFile("../../deploy/manifests/authenticator.yaml")
	if err != nil {
		k.t.Fatal(err)
	}
	const id = "    clusterID: my-cluster\n"
	k.write(filepath.Join(checkout, "deploy/manifests/authenticator.yaml"), strings.Replace(string(manifest), id, id+"    "+fmt.Sprintf(settings, sts.URL), 1))
	known := func() {
		for what, c := range map[string]struct{ token, want string }{
			"the role's":           {ststest.Token(k.t, deploy, clusterName, time.Now()), `arn:aws:sts::111122223333:assumed-role/deploy/ci-17 ["deployers","system:authenticated"]`},
			"for another cluster":  {ststest.Token(k.t, deploy, "another", time.Now()), ""},
			"of an unknown key":    {ststest.Token(k.t, ststest.User("mallory", 4), clusterName, time.Now()), ""},
			"that is none of AWS'": {"k8s-aws-v1.AAAA", ""},
		} {
			out, err := k.try(withToken(c.token) + ` auth whoami -o jsonpath='{.status.userInfo.username} {.status.userInfo.groups}'`)
			if c.want != "" && (err != nil || out != c.want) || c.want == "" && (err == nil || !unauthorized(err)) {
				k.t.Errorf("a token %s: %q, %v", what, out, err)
			}
		}
	}
	k.steps().follow(page{name: "authenticator.md", least: 15, unsteady: installedUnsteady, there: func(line, _ string) (out string, err error) {
		switch {
		case strings.HasPrefix(line, "kubectl get accessentries"):
			k.says("True", `kubectl get accessentries deploy -o jsonpath='{.status.conditions[?(@.type=="Accepted")].status}'`)
		case strings.Contains(line, "static/authenticator-rbac.yaml"): // two ways to the same: they share ports and directories
			k.run("kubectl -n muster-system delete daemonset muster-authenticator --cascade=foreground --timeout=60s")
		case strings.Contains(line, "authenticator-pod.yaml"):
			k.run("cat <<EOF >>/etc/kubernetes/muster-authenticator/authenticator.yaml\n" + fmt.Sprintf(settings, sts.URL) + "EOF")
		}
		out, err = k.line(line)
		if strings.Contains(line, "grep -q authentication-token-webhook") { // the API server has the flags
			known()
		}
		return out, err
	}})
	known()
	k.says("True", `kubectl -n kube-system get pod muster-authenticator-`+controlName+` -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}'`)
	if logs := k.run(`kubectl -n kube-system logs muster-authenticator-` + controlName); strings.Contains(logs, "forbidden") {
		k.t.Errorf("it misses rights:\n%s", logs)
	}
}

// sts is an STS that answers as AWS's does, on the node's loopback.
func (k *kubeadmCluster) sts(known ...ststest.Key) *httptest.Server {
	k.t.Helper()
	namespace, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", k.host.PID()))
	if err != nil {
		k.t.Fatal(err)
	}
	defer func() { _ = namespace.Close() }()
	var listener net.Listener
	err = host.InNetwork(namespace, func() (err error) {
		listener, err = new(net.ListenConfig).Listen(k.t.Context(), "tcp", "127.0.0.1:0")
		return err
	})
	if err != nil {
		k.t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(ststest.New(k.t, known...))
	_ = server.Listener.Close()
	server.Listener = listener
	server.StartTLS()
	k.t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server
}
