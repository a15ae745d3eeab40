// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/api/v1alpha1"
)

// TestFiveClustersAtOnce applies five clusters by kubectl, whose names are at the limits of EKS's rules, and deletes
// their namespaces.
//
//story:about cluster/serve cluster/clustercontroller plane/portplan machine/capacity
func TestFiveClustersAtOnce(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.muster("up", "--provider", "simulated", "--nodes", "0")

	for name, refusals := range badClusters() {
		for document, want := range refusals {
			_, err := i.kubectl("--context", "muster-management", "create", "--dry-run=server", "-o", "name", "-f", i.manifest(document))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q", name, err, want)
			}
		}
	}

	if out, err := i.kubectl("--context", "muster-management", "delete", "namespace", "muster-iam", "--dry-run=server"); err == nil || !strings.Contains(err.Error(), "is Muster's own") {
		t.Errorf("the namespace of access keys can be deleted: %s, %v", out, err)
	}
	i.localGroupsStaySmall()
	names := []string{"a", "default", "Upper_Case", strings.Repeat("n", 63), "Z" + strings.Repeat("9-_x", 24) + "end"}
	var documents []string
	for _, name := range names {
		slug := v1alpha1.ClusterSlug(name)
		documents = append(documents,
			fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", slug),
			fmt.Sprintf("apiVersion: muster.dev/v1alpha1\nkind: Cluster\nmetadata: {name: %[1]s, namespace: %[1]s}\nspec: {name: %[2]q}\n", slug, name),
			fmt.Sprintf("apiVersion: muster.dev/v1alpha1\nkind: NodeGroup\nmetadata: {name: default, namespace: %s}\nspec: {name: default, provider: simulated, scalingConfig: {desiredSize: 1}}\n", slug))
	}
	i.applySlowly(documents)
	for _, name := range names {
		took := i.eventually("cluster "+name+" is served", func() error { return i.asAsked(name, "", true) })
		t.Logf("%.20s after %s more", name, took.Round(time.Second))
		i.eventually("the node of "+name+" is Ready", func() error {
			out, err := i.kubectl("--kubeconfig", i.dir.Cluster(v1alpha1.ClusterSlug(name)).Kubeconfig(), "get", "nodes", "-o", `jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}`)
			if err == nil && out != "True" {
				err = fmt.Errorf("nodes %q", out)
			}
			return err
		})
	}
	if out, _ := i.muster("get", "clusters", "--no-headers"); strings.Count(out, "Ready") != len(names)+1 {
		t.Errorf("muster get clusters:\n%s", out)
	}
	arguments := []string{"--context", "muster-management", "delete", "namespace", "--wait=false"}
	for _, name := range names {
		arguments = append(arguments, v1alpha1.ClusterSlug(name))
	}
	i.mustKubectl(arguments...)
	for _, name := range names {
		i.eventually("cluster "+name+" is gone", func() error { return i.asAsked(name, v1alpha1.ClusterSlug(name), false) })
	}
}

// localGroupsStaySmall applies node groups without a maxSize, in a namespace of no cluster: those of local machines
// have a small one, which a larger scale has to raise.
func (i *installation) localGroupsStaySmall() {
	i.t.Helper()
	const context = "--context=muster-management"
	document := func(spec string) string {
		return fmt.Sprintf("{apiVersion: muster.dev/v1alpha1, kind: NodeGroup, metadata: {name: small, namespace: default}, spec: {name: small, %s}}", spec)
	}
	for spec, want := range map[string]string{
		"scalingConfig: {desiredSize: 1}":                      "5",
		"scalingConfig: {desiredSize: 9}":                      "9",
		"scalingConfig: {desiredSize: 1, maxSize: 20}":         "20",
		"provider: simulated, scalingConfig: {desiredSize: 1}": "5000",
	} {
		out := i.mustKubectl("create", context, "--dry-run=server", "-o", "jsonpath={.spec.scalingConfig.maxSize}", "-f", i.manifest(document(spec)))
		if out != want {
			i.t.Errorf("%s: maxSize %s, want %s", spec, out, want)
		}
	}
	i.apply(document("scalingConfig: {desiredSize: 0}"), context)
	for _, arguments := range [][]string{
		{"apply", "--dry-run=server", "-f", i.manifest(document("scalingConfig: {desiredSize: 9}"))},
		{"replace", "--dry-run=server", "-f", i.manifest(document("scalingConfig: {desiredSize: 9}"))},
		{"scale", "--namespace=default", "nodegroup/small", "--replicas=9"},
	} {
		if out, err := i.kubectl(append(arguments, context)...); err == nil || !strings.Contains(err.Error(), "desiredSize must be from minSize to maxSize") {
			i.t.Errorf("kubectl %s of more than maxSize: %s, %v", arguments[0], out, err)
		}
	}
	i.apply(document("scalingConfig: {desiredSize: 0, maxSize: 9}"), context)
	if out := i.mustKubectl("get", context, "--namespace=default", "nodegroup/small", "-o", "jsonpath={.spec.scalingConfig.maxSize}"); out != "9" {
		i.t.Errorf("maxSize %s, raised to 9", out)
	}
	i.mustKubectl("delete", context, "--namespace=default", "nodegroup/small", "--timeout=60s")
}

// badClusters are documents that the management plane refuses, each with what it says.
func badClusters() map[string]map[string]string {
	document := func(name, spec string) string {
		return fmt.Sprintf("{apiVersion: muster.dev/v1alpha1, kind: Cluster, metadata: {name: %s, namespace: default}, spec: {%s}}", name, spec)
	}
	return map[string]map[string]string{
		"no name":               {document("x", ""): "spec.name: Required value"},
		"101 characters":        {document("x", "name: "+strings.Repeat("n", 101)): "spec.name: Too long: may not be more than 100 bytes"},
		"a dot":                 {document("x", "name: a.b"): "spec.name in body should match"},
		"begins with a dash":    {document("x", `name: "-a"`): "spec.name in body should match"},
		"a name of another":     {document("x", "name: other"): "metadata.name must be spec.name"},
		"no slug":               {document("x", "name: Upper"): "metadata.name must be spec.name, or for a spec.name that is not a DNS label"},
		"a version of nobody":   {document("x", "name: x, version: latest"): "spec.version in body should match"},
		"a network of nothing":  {document("x", "name: x, network: {serviceCIDR: 10.0.0.0/33}"): "serviceCIDR must be an IPv4 network"},
		"an unknown field":      {document("x", "name: x, nodes: 3"): `unknown field "spec.nodes"`},
		"a port beyond all":     {document("x", "name: x, apiServer: {port: 65536}"): "should be less than or equal to 65535"},
		"a mode that is not":    {document("x", "name: x, accessConfig: {authenticationMode: ALL}"): "Unsupported value"},
		"certificates too long": {document("x", "name: x, certificates: {clientDuration: 9000h}"): "must be from 10m to 8760h"},
	}
}

// applySlowly gives documents to kubectl one at a time, with a pause between two, as a person or a slow pipe would.
func (i *installation) applySlowly(documents []string) {
	i.t.Helper()
	cmd := exec.CommandContext(i.t.Context(), filepath.Join(i.bin, "kubectl"), "--context", "muster-management", "apply", "-f", "-")
	cmd.Env = i.environment()
	reader, writer := io.Pipe()
	cmd.Stdin = reader
	go func() {
		for _, document := range documents {
			<-time.After(50 * time.Millisecond)
			if _, err := io.WriteString(writer, "---\n"+document); err != nil {
				return
			}
		}
		_ = writer.Close()
	}()
	if out, err := cmd.CombinedOutput(); err != nil {
		i.t.Fatalf("kubectl apply: %v\n%s", err, out)
	}
}
