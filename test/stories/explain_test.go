// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestExplain has causes happen for real, and asks muster explain for each: the identifier, alone, with evidence, and
// the exit code. A machine that is Ready has none, and one that is on its way neither.
// A bundle of it has none of its secrets.
//
//story:about explain/cause explain/diagnosis explain/evidence explain/supportbundle explain/redaction explain/readaudit explain/nodeevidence iam/refusalcause ./cmd/muster/explain ./cmd/muster/node ./cmd/muster/mcp ./mcp
func TestExplain(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.muster("up", "--nodes", "1")
	i.ready()
	machine, _ := i.theMachine()
	i.explains("machine", machine, 0)
	out, talk, err := i.try("explain")
	if err != nil || !strings.Contains(out, "Nothing is wrong") {
		t.Errorf("of an installation that is well: %v\n%s%s", err, out, talk)
	}
	if _, _, err := i.try("explain", "machine", "i-00000000000000000"); code(err) != 2 {
		t.Errorf("of a machine that is not there: %v", err)
	}
	t.Run("a bundle", func(t *testing.T) { bundleWithoutSecrets(t, i.in(t), machine) })
	t.Run("groups", func(t *testing.T) { badGroups(t, i) })
	for _, step := range []struct {
		name string
		run  func(*testing.T, *installation, string)
	}{
		{"a role that is refused", refusedRole},
		{"a webhook without backends", webhookAway},
		{"a request for another's name", deniedRequest},
		{"a kubelet that is silent", silentKubelet},
		{"objects of the cluster", badObjects},
		{"servers that the API server asks", awayServers},
		{"the machine by itself", machineItself},
		{"an assistant", assistantAsks},
		{"a Node that is deleted", deletedNode},
	} {
		t.Run(step.name, func(t *testing.T) { step.run(t, i.in(t), machine) })
	}
	i.muster("down")
	if _, _, err := i.try("explain"); code(err) != 4 {
		t.Errorf("while nothing runs: %v", err)
	}
}

// badGroups has node groups that cannot have machines, and some whose machines cannot become nodes.
func badGroups(t *testing.T, i *installation) {
	for name, test := range map[string]struct{ spec, cause string }{
		"no-role":   {`nodeRole: nobody`, "M-GROUP-91"},
		"no-subnet": {`subnetIDs: [subnet-00000000000000000]`, "M-GROUP-92"},
		"script":    {fmt.Sprintf("launchTemplate: {userData: %q}", "#!/bin/sh\necho no disk >&2; exit 4\n"), "M-NODE-47"},
		"hangs":     {fmt.Sprintf("launchTemplate: {userData: %q}", "#!/bin/sh\nsleep 500\n"), "M-NODE-89"},
		"gate":      {fmt.Sprintf("launchTemplate: {userData: %q}", "{apiVersion: node.eks.aws/v1alpha1, kind: NodeConfig, spec: {kubelet: {config: {featureGates: {NoSuchGate: true}}}}}"), "M-NODE-48"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := i.in(t)
			i.apply(fmt.Sprintf("{apiVersion: muster.dev/v1alpha1, kind: NodeGroup, metadata: {namespace: muster, name: %[1]s}, spec: {name: %[1]s, scalingConfig: {desiredSize: 1}, %[2]s}}", name, test.spec), managementContext)
			i.explains("nodegroup", name, 1, test.cause)
			if out, _ := i.muster("get", "nodegroup", name, "-o", "yaml"); strings.Count(out, test.cause+": ") != 1 {
				t.Errorf("the group does not say %s, once:\n%s", test.cause, out)
			}
			if id := i.machineOf(name); id != "" {
				i.explains("machine", id, 1, test.cause)
			}
			i.muster("delete", "nodegroup", name)
		})
	}
}

// machineOf is a machine of a node group; "" if it has none.
func (i *installation) machineOf(group string) string {
	i.t.Helper()
	return i.mustKubectl("get", managementContext, "machines", "-l", "muster.dev/nodegroup="+group, "-o", "jsonpath={.items[*].metadata.name}")
}

// refusedRole has a machine come with a role whose access entry is of an earlier role, then with none, then with the right
// one.
func refusedRole(t *testing.T, i *installation, _ string) {
	const arn = "arn:aws:iam::" + iamAccount + ":role/guests"
	newIAM(t, i).mustAWS(nil, "iam", "create-role", "--role-name", "guests", "--assume-role-policy-document",
		`{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}]}`)
	entry := func(id string) string {
		return "{apiVersion: access.muster.dev/v1alpha1, kind: AccessEntry, metadata: {name: guests}, spec: {principalARN: '" + arn + "', type: EC2_LINUX" + id + "}}"
	}
	i.apply(entry(", principalID: AROAAAAAAAAAAAAAAAAAA"))
	id := i.machineComes("guests", "nodeRole: guests, ")
	i.explains("machine", id, 1, "M-IAM-04")
	i.mustKubectl("delete", "accessentry", "guests")
	i.eventually("muster status names the cause, too", func() error {
		if out, _, _ := i.try("status"); !anyLine(out, id, "M-IAM-01") {
			return errors.New(out)
		}
		return nil
	})
	i.explains("machine", id, 1, "M-IAM-01")
	i.apply(entry(""))
	i.explains("machine", id, 0)
	i.muster("delete", "nodegroup", "guests")
}

// machineComes makes a node group of one machine, and returns the machine.
func (i *installation) machineComes(group, spec string) (id string) {
	i.t.Helper()
	i.apply(fmt.Sprintf("{apiVersion: muster.dev/v1alpha1, kind: NodeGroup, metadata: {namespace: muster, name: %[1]s}, spec: {name: %[1]s, %[2]sscalingConfig: {desiredSize: 1}}}", group, spec), managementContext)
	i.eventually("the group has a machine", func() error {
		if id = i.machineOf(group); id == "" {
			return errors.New("none yet")
		}
		return nil
	})
	return id
}

// webhookAway has a webhook that nobody serves refuse the Nodes of new machines.
func webhookAway(_ *testing.T, i *installation, _ string) {
	i.apply(`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: nobody}, webhooks: [{name: nobody.muster.dev, failurePolicy: Fail, ` +
		`sideEffects: None, admissionReviewVersions: [v1], timeoutSeconds: 1, clientConfig: {service: {namespace: default, name: nobody}}, ` +
		`rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [nodes]}]}]}`)
	id := i.machineComes("kept-out", "")
	i.explains("machine", id, 1, "M-IAM-19")
	i.mustKubectl("delete", "validatingwebhookconfiguration", "nobody")
	i.explains("machine", id, 0)
	i.muster("delete", "nodegroup", "kept-out")
}

// deniedRequest asks for a serving certificate with the name of the API server, as the machine would.
func deniedRequest(t *testing.T, i *installation, machine string) {
	node := i.mustKubectl("get", managementContext, "machine", machine, "-o", "jsonpath={.status.nodeName}")
	user := "system:node:" + node
	raw, _ := requestOf(t, x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: []string{"system:nodes"}}, DNSNames: []string{"kubernetes.default.svc"}})
	i.mustKubectl("create", "--as="+user, "--as-group=system:nodes", "--as-group=system:authenticated", "-f", i.manifest(fmt.Sprintf(
		"{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: another}, spec: {request: %s, signerName: kubernetes.io/kubelet-serving, usages: [digital signature, server auth]}}",
		base64.StdEncoding.EncodeToString(raw))))
	i.explains("csr", "another", 1, "M-TLS-38")
	i.explains("machine", machine, 1, "M-TLS-38")
	i.mustKubectl("delete", "csr", "another")
	i.explains("machine", machine, 0)
}

// badObjects has pods, a claim and a Service that cannot be as they are to be, and asks for one of them as of a cluster
// elsewhere, too.
func badObjects(t *testing.T, i *installation, machine string) {
	node := i.mustKubectl("get", managementContext, "machine", machine, "-o", "jsonpath={.status.nodeName}")
	pod := func(name, spec string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: %[1]s}, spec: {terminationGracePeriodSeconds: 0, %[2]s}}\n---\n", name, spec)
	}
	const container = `name: c, image: "muster.dev/workload:v1"`
	i.apply(pod("large", "containers: [{"+container+`, resources: {requests: {cpu: "1000"}}}]`) +
		pod("ends", "containers: [{"+container+", args: [there-is-no-such-thing]}]") +
		pod("refers", "containers: [{"+container+", envFrom: [{configMapRef: {name: nobody}}]}]") +
		pod("claims", "containers: [{"+container+", volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v, persistentVolumeClaim: {claimName: nothing}}]") +
		"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: nothing}, spec: {storageClassName: nobody, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}\n---\n" +
		"{apiVersion: v1, kind: Service, metadata: {name: lonely}, spec: {selector: {app: nobody}, ports: [{port: 80}]}}\n")
	for _, test := range []struct{ kind, name, cause string }{
		{"pod", "large", "M-POD-94"},
		{"pod", "default/ends", "M-POD-95"},
		{"pod", "refers", "M-POD-97"},
		{"pod", "claims", "M-POD-85"},
		{"volume", "nothing", "M-POD-85"},
		{"service", "lonely", "M-POD-80"},
	} {
		i.explains(test.kind, test.name, 1, test.cause)
	}
	out, talk, err := i.try("explain", "pod", "large", "--kubeconfig", i.kubeconfig, "--context", "muster")
	if code(err) != 1 || !strings.Contains(out, "M-POD-94") {
		t.Errorf("by a kubeconfig: %v\n%s%s", err, out, talk)
	}
	if out, talk, err := i.try("explain", "node", node, "--kubeconfig", i.kubeconfig, "--context", "muster"); err != nil {
		t.Errorf("the node by a kubeconfig: %v\n%s%s", err, out, talk)
	}
	i.mustKubectl("delete", "--wait=false", "pod/large", "pod/ends", "pod/refers", "pod/claims", "pvc/nothing", "service/lonely")
}

// awayServers has a webhook and an APIService whose Service nobody serves, and asks what is wrong with the cluster.
func awayServers(_ *testing.T, i *installation, _ string) {
	i.apply(`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: nobody}, webhooks: [{name: nobody.muster.dev, failurePolicy: Fail, ` +
		`sideEffects: None, admissionReviewVersions: [v1], timeoutSeconds: 1, clientConfig: {service: {namespace: default, name: nobody}}, ` +
		`rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}]}`)
	i.explains("cluster", "muster", 1, "M-POD-78")
	i.mustKubectl("delete", "validatingwebhookconfiguration", "nobody")
	i.explains("cluster", "muster", 0)
	i.apply(`{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.nobody.muster.dev}, spec: {group: nobody.muster.dev, version: v1, groupPriorityMinimum: 100, versionPriority: 100, ` +
		`insecureSkipTLSVerify: true, service: {namespace: default, name: nobody}}}`)
	i.explains("cluster", "muster", 1, "M-POD-79")
	i.mustKubectl("delete", "apiservice", "v1.nobody.muster.dev")
	i.explains("cluster", "muster", 0)
}

// machineItself asks a machine, by what it has itself: nothing is wrong, and then its kubelet is held.
func machineItself(t *testing.T, i *installation, machine string) {
	verdict := func(want string, exit int) {
		t.Helper()
		i.eventually("the machine says of itself that it is "+want, func() error {
			out, talk, err := i.try("node", "explain", machine, "-o", "json")
			var report struct{ Kind, Verdict string }
			if unreadable := json.Unmarshal([]byte(out), &report); unreadable != nil || report.Kind != "node" || report.Verdict != want || code(err) != exit {
				return fmt.Errorf("exit code %d: %s%s", code(err), out, talk)
			}
			return nil
		})
	}
	verdict("Healthy", 0)
	i.muster("drill", machine, "kubelet", "--for", "10m")
	verdict("NotKnown", 3)
	i.muster("drill", machine, "end")
	verdict("Healthy", 0)
	i.explains("machine", machine, 0)
}

// silentKubelet takes a machine's kubelet away for a while.
func silentKubelet(_ *testing.T, i *installation, machine string) {
	i.muster("drill", machine, "kubelet", "--for", "10m")
	i.explains("machine", machine, 1, "M-READY-65")
	i.muster("drill", machine, "end")
	i.explains("machine", machine, 0)
}

// deletedNode deletes the Node of a machine.
func deletedNode(_ *testing.T, i *installation, machine string) {
	i.mustKubectl("delete", "node", "--all")
	i.explains("machine", machine, 1, "M-NAME-45")
}

// code is the exit code of a command.
func code(err error) int {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	return 0
}

// explains waits until muster explain ends with a code and names the causes, and no others at any time.
func (i *installation) explains(kind, name string, want int, causes ...string) {
	i.t.Helper()
	i.explainsBeside(nil, kind, name, want, causes...)
}

// explainsBeside is explains of what may have other causes, too, before or beside those that are waited for.
func (i *installation) explainsBeside(others []string, kind, name string, want int, causes ...string) {
	i.t.Helper()
	sources := map[string][]string{} // of the evidence, by cause
	took := i.eventually(fmt.Sprintf("%s %s is explained by %v", kind, name, causes), func() error {
		out, talk, err := i.try("explain", kind, name, "-o", "json")
		var report struct {
			Verdict string `json:"verdict"`
			Causes  []struct {
				Cause    string `json:"cause"`
				Fix      string `json:"fix"`
				Evidence []struct {
					Source string `json:"source"`
				} `json:"evidence"`
			} `json:"causes"`
		}
		if unreadable := json.Unmarshal([]byte(out), &report); unreadable != nil {
			return fmt.Errorf("%w: %s%s", unreadable, out, talk)
		}
		var found []string
		for _, c := range report.Causes {
			if slices.Contains(others, c.Cause) {
				continue
			}
			found = append(found, c.Cause)
			for _, e := range c.Evidence {
				if !slices.Contains(sources[c.Cause], e.Source) {
					sources[c.Cause] = append(sources[c.Cause], e.Source)
				}
			}
			if c.Fix == "" || len(c.Evidence) == 0 {
				i.t.Errorf("%s has no fix, or no evidence:\n%s", c.Cause, out)
			}
			if !slices.Contains(causes, c.Cause) && want == 1 {
				i.t.Errorf("%s %s is explained by %s, which it is not:\n%s", kind, name, c.Cause, out)
			}
		}
		if code(err) != want || !slices.Equal(found, causes) {
			return fmt.Errorf("exit code %d, %s %v", code(err), report.Verdict, found)
		}
		return nil
	})
	for _, id := range causes { // as tools/causetable reads it
		i.t.Logf("explained %s of a %s after %.1f s from %s", id, kind, took.Seconds(), strings.Join(sources[id], ","))
	}
}
