// SPDX-License-Identifier: Apache-2.0

//go:build soak

package stories

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"muster.dev/muster/internal/certificates/pki/pkitest"
)

// helmCommands are those of Helm that a page shows for whoever has pushed the image to a registry; here it was
// imported.
func helmCommands(t *testing.T, page string, want int) (all []string) {
	t.Helper()
	text := strings.ReplaceAll(readPage(t, page), "registry.example.com/muster", "muster.dev/muster")
	for _, found := range regexp.MustCompile(`(?m)^    (helm (?:.*\\\n)*.*)$`).FindAllStringSubmatch(text, -1) {
		all = append(all, found[1])
	}
	if len(all) != want {
		t.Fatalf("%s shows %d commands of Helm, not %d: %q", page, len(all), want, all)
	}
	return all
}

// installHelm builds the Helm whose library renders the manifests, and puts it where its own archive would be put. It
// also does the steps of the page before anything is installed.
func (k *kubeadmCluster) installHelm() {
	k.t.Helper()
	program := filepath.Join(k.t.TempDir(), "helm")
	build := exec.CommandContext(k.t.Context(), "go", "build", "-o", program, "helm.sh/helm/v4/cmd/helm")
	build.Dir = "../../deploy/render"
	if out, err := build.CombinedOutput(); err != nil {
		k.t.Fatalf("building Helm: %v\n%s", err, out)
	}
	content, err := os.ReadFile(program)
	if err != nil {
		k.t.Fatal(err)
	}
	if err := k.host.Write("/usr/local/bin/helm", string(content), 0o755); err != nil {
		k.t.Fatal(err)
	}
	start, _, found := strings.Cut(readPage(k.t, "install.md"), "**3. The controller.**")
	if !found {
		k.t.Fatal("install.md has no third step")
	}
	for _, c := range transcripts(start) {
		k.run(c.line)
	}
}

// lintCharts has Helm look at each chart with each profile, and the API server at what comes of it.
func (k *kubeadmCluster) lintCharts() {
	k.installHelm()
	for chart, profiles := range map[string]string{"muster-certificate-controller": "deploy/profiles/*.yaml", "muster-authenticator": "deploy/profiles/authenticator/*.yaml", "muster-pod-identity-webhook": "deploy/profiles/pod-identity-webhook/*.yaml"} {
		names := strings.Fields(k.run("ls " + profiles))
		if len(names) < 2 {
			k.t.Errorf("profiles of %s: %q", chart, names)
		}
		for _, name := range names {
			values := " deploy/charts/" + chart + " -n muster-system -f " + name
			if out := k.run("helm lint --strict" + values); !strings.Contains(out, "1 chart(s) linted, 0 chart(s) failed") || strings.Contains(out, "WARN") {
				k.t.Errorf("lint with %s: %s", name, out)
			}
			k.run("helm template " + chart + values + " >rendered.yaml 2>template.err && test ! -s template.err")
			if out := k.run("kubectl apply --server-side --dry-run=server --validate=strict -f rendered.yaml"); strings.Contains(out, "Warning") {
				k.t.Errorf("what the API server says of %s with %s: %s", chart, name, out)
			}
		}
	}
}

// objects are all that the cluster has, but for what comes by itself or is asked for by the story.
func (k *kubeadmCluster) objects() string {
	k.t.Helper()
	return k.run(`kinds=$(kubectl api-resources --verbs=list -o name | grep -vE '^(events|certificatesigningrequests|componentstatuses|apiservices)(\.|$)' | paste -sd, -)
		kubectl get $kinds -A -o jsonpath='{range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}{"\n"}{end}' | sort -u`) + "\n"
}

// left tells what there is outside of muster-system that was not there before, or is there no more. In there, pods of
// what was removed take their time to end.
func (k *kubeadmCluster) left(before string) string {
	k.t.Helper()
	return regexp.MustCompile(`(?m)^[+-]\S+ muster-system/.*\n`).ReplaceAllString(differences(before, k.objects()), "")
}

// asksToServe asks for a serving certificate as the node's kubelet.
func (k *kubeadmCluster) asksToServe(name string) {
	k.t.Helper()
	k.create("kubectl --kubeconfig=/etc/kubernetes/kubelet.conf", name, signerServing, "server auth", pkitest.Kubelet(k.t, controlName, controlName, controlAddress))
}

// rolledOut waits until both replicas are of the newest version.
func (k *kubeadmCluster) rolledOut() {
	k.t.Helper()
	k.run("kubectl -n " + approverNamespace + " rollout status deployment " + approverName + " --timeout=80s")
	k.says("2 2 2", "kubectl -n "+approverNamespace+" get deployment "+approverName+" -o jsonpath='{.status.replicas} {.status.updatedReplicas} {.status.readyReplicas}'")
}

func (k *kubeadmCluster) controllerByHelm() {
	commands := helmCommands(k.t, "install.md", 4)
	observe, approve, sign, uninstall := commands[0], commands[1], commands[2], commands[3]
	before := k.objects()

	k.run(observe)
	k.rolledOut()
	k.asksToServe("observed")
	k.says("WouldApprove", `kubectl get events --field-selector involvedObject.name=observed -o jsonpath='{.items[*].reason}'`)
	if state := k.run(`kubectl get csr observed -o jsonpath='{.status.conditions}{.status.certificate}'`); state != "" {
		k.t.Errorf("observing, it decided: %s", state)
	}

	k.run(approve)
	k.rolledOut()
	k.says(issuedInPod, stateOfRequest("observed"))

	k.write(filepath.Join(checkout, "values.yaml"), strings.Replace(k.reserved(), "192.0.2.10/32", controlAddress+"/32", 1))
	k.run(approve + " -f values.yaml")
	k.rolledOut()
	k.asksToServe("reserved")
	k.says("Denied", `kubectl get csr reserved -o jsonpath='{.status.conditions[?(@.type=="Denied")].type}'`)

	k.run(sign)
	k.rolledOut()
	k.asksToServe("signed")
	k.says(issuedInPod, stateOfRequest("signed"))
	// The kubelet serves no logs: it has no certificate yet that the API server would verify.
	if logs := k.run(`cat /var/log/pods/` + approverNamespace + `_` + approverName + `*/*/*.log`); strings.Contains(logs, "forbidden") {
		k.t.Errorf("it misses rights:\n%s", logs)
	}

	k.run(uninstall)
	if left := k.left(before); left != "" {
		k.t.Errorf("without the controller the cluster is not what it was:\n%s", left)
	}
	k.run("kubectl delete csr --ignore-not-found observed reserved signed")
}

// reserved are the values by which the page keeps addresses from nodes.
func (k *kubeadmCluster) reserved() string {
	k.t.Helper()
	values := regexp.MustCompile(`(?m)^    policy:\n {6}policy:\n {8}reserved:\n(?: {10}.*\n)+`).FindString(readPage(k.t, "install.md"))
	if !strings.Contains(values, "192.0.2.10/32") {
		k.t.Fatalf("install.md reserves these addresses: %q", values)
	}
	return values
}

// authenticatorByHelm ends without the namespace, as it was before the page of the certificate controller began.
func (k *kubeadmCluster) authenticatorByHelm() {
	before := k.objects()
	rolledOut := func() {
		k.t.Helper()
		k.run("kubectl -n " + approverNamespace + " rollout status daemonset muster-authenticator --timeout=80s")
		k.says("ok", "curl -s 127.0.0.1:21363/readyz")
	}
	k.run(helmCommands(k.t, "authenticator.md", 1)[0])
	rolledOut()
	binding := `kubectl get clusterrolebindings -o jsonpath='{.items[?(@.subjects[0].name=="muster:access-entry:deploy")].roleRef.name}'`
	k.write("/root/entry.yaml", `apiVersion: access.muster.dev/v1alpha1
kind: AccessEntry
metadata: {name: deploy}
spec:
  principalARN: arn:aws:iam::111122223333:role/ci/deploy
  accessPolicies: [{policyARN: "arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy", scope: {type: cluster}}]
`)
	k.run("kubectl apply -f /root/entry.yaml")
	k.says("True", `kubectl get accessentries deploy -o jsonpath='{.status.conditions[?(@.type=="Accepted")].status}'`)
	if role := k.run(binding); role != "" {
		k.t.Errorf("it bound %s, and nobody told it to keep RBAC", role)
	}

	k.run("helm upgrade muster-authenticator deploy/charts/muster-authenticator -n muster-system -f deploy/profiles/authenticator/access-policies.yaml")
	rolledOut()
	k.says("view", binding)
	k.run("kubectl delete -f /root/entry.yaml")
	k.says("", binding)

	// Helm leaves what came with a chart's kinds, so that nobody's objects are lost.
	k.run("helm uninstall muster-authenticator -n muster-system")
	want := fmt.Sprintf("+CustomResourceDefinition /%s\n+CustomResourceDefinition /%s\n", "accessentries.access.muster.dev", "iamidentitymappings.iamauthenticator.k8s.aws")
	if left := k.left(before); left != want {
		k.t.Errorf("without the authenticator the cluster is not what it was:\n%s", left)
	}
	k.run("kubectl delete crd accessentries.access.muster.dev iamidentitymappings.iamauthenticator.k8s.aws")
	k.run("kubectl delete namespace " + approverNamespace)
	k.run("rm -r /etc/kubernetes/muster-authenticator /var/lib/muster-authenticator machines.yaml values.yaml rendered.yaml template.err")
}
