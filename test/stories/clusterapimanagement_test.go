// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"muster.dev/muster/test/plane"
)

// clusterAPI is a management cluster of Cluster API and its AWS provider, which work on an account of Muster. It is a plain upstream control
// plane, and the managers are processes beside it.
type clusterAPI struct {
	*iam
	management *plane.Plane
	kubeconfig string // of the management cluster
	managers   []*plane.Process
}

// manager is a program of `make cluster-api` and what it needs.
type manager struct {
	name, components string
	flags            []string
}

// newClusterAPI starts a management cluster with both managers in it.
func newClusterAPI(w *iam) *clusterAPI {
	w.t.Helper()
	c := &clusterAPI{iam: w}
	var err error
	if c.management, err = plane.Start(w.t.Context(), plane.Config{Bin: w.bin}); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.close)
	if c.kubeconfig, err = c.management.Kubeconfig("kubernetes-admin", "system:masters"); err != nil {
		w.t.Fatal(err)
	}
	if _, err := c.management.RunControllerManager(); err != nil {
		w.t.Fatal(err)
	}
	c.start(manager{name: "cluster-api", components: "core-components.yaml"})
	c.start(manager{name: "cluster-api-provider-aws", components: "infrastructure-components.yaml", flags: []string{
		"--feature-gates=EKSEnableIAM=true,EKSAllowAddRoles=true,EKSFargate=true", "--service-endpoints=" + c.serviceEndpoints(), "--wait-infra-period=2s",
		"--sync-period=20s", // replicas of a node group that grew are counted again at its end
	}})
	return c
}

// close ends the management cluster, and says what the managers said if the story failed.
func (c *clusterAPI) close() {
	for _, p := range c.managers {
		if c.t.Failed() {
			c.t.Logf("the log of %s ends so:\n%s", p.Name, p.Tail())
			_ = os.Rename(p.Log, filepath.Join("..", "..", ".build", "logs", p.Name+".log"))
		}
	}
	if err := c.management.Close(); err != nil {
		c.t.Error(err)
	}
}

// serviceEndpoints has the account as the endpoint of each service that the flag knows.
func (c *clusterAPI) serviceEndpoints() string {
	c.t.Helper()
	value := func(name string) string {
		for _, variable := range c.endpoint {
			if text, ok := strings.CutPrefix(variable, name+"="); ok {
				return text
			}
		}
		c.t.Fatalf("muster env does not set %s", name)
		return ""
	}
	endpoint := value("AWS_ENDPOINT_URL")
	var pairs []string
	for _, service := range []string{"ec2", "eks", "elasticloadbalancing", "events", "s3", "secretsmanager", "sqs", "ssm", "sts", "tagging"} {
		pairs = append(pairs, service+"="+endpoint)
	}
	return value("AWS_REGION") + ":" + strings.Join(pairs, ",")
}

// start installs what a manager needs in the management cluster, and runs it.
func (c *clusterAPI) start(m manager) {
	c.t.Helper()
	dir := filepath.Join(c.management.Dir(), m.name)
	webhooks := freeAddress(c.t)
	authority := servingCertificate(c.t, dir)
	raw, err := os.ReadFile(filepath.Join(c.bin, "cluster-api", m.components))
	if err != nil {
		c.t.Fatal(err)
	}
	file := filepath.Join(dir, m.components)
	if err := os.WriteFile(file, besideAPIServer(c.t, raw, "https://"+webhooks, authority), 0o600); err != nil {
		c.t.Fatal(err)
	}
	c.manage("apply", "--server-side", "-f", file)
	c.manage("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
	_, port, _ := net.SplitHostPort(webhooks)
	args := slices.Concat([]string{"-i"}, c.environmentOf(c.admin), []string{
		"POD_NAMESPACE=default", "KUBECONFIG=" + c.kubeconfig, filepath.Join(c.bin, "cluster-api", m.name+"-manager"), "--leader-elect=false", "--diagnostics-address=127.0.0.1:0",
		"--insecure-diagnostics=true", "--health-addr=" + freeAddress(c.t), "--webhook-port=" + port, "--webhook-cert-dir=" + dir,
	}, m.flags)
	process, err := c.management.Run(m.name, "/usr/bin/env", args...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.managers = append(c.managers, process)
	c.eventually(m.name+" serves its webhooks", func() error {
		select {
		case <-process.Ended():
			c.t.Fatalf("%s has ended; it said at last:\n%s", m.name, process.Tail())
		default:
		}
		connection, err := (&net.Dialer{Timeout: time.Second}).DialContext(c.t.Context(), "tcp", webhooks)
		if err != nil {
			return err
		}
		return connection.Close()
	})
}

// besideAPIServer is the manifests of a manager for one that runs as a process: its kinds, and its webhooks at a URL. Objects for pods are left out.
func besideAPIServer(t *testing.T, manifests []byte, url string, authority []byte) []byte {
	t.Helper()
	var kept [][]byte
	for document := range bytes.SplitSeq(manifests, []byte("\n---\n")) {
		var object map[string]any
		if err := yaml.Unmarshal(document, &object); err != nil {
			t.Fatal(err)
		}
		switch object["kind"] {
		case "Namespace", "CustomResourceDefinition", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		default:
			continue
		}
		atURL(object, url, authority)
		installedByClusterctl(object)
		raw, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, raw)
	}
	return bytes.Join(kept, []byte("---\n"))
}

// installedByClusterctl has the label by which `clusterctl init` marks what it installs: `clusterctl move` looks at no other kinds.
func installedByClusterctl(object map[string]any) {
	metadata, _ := object["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	if labels == nil {
		labels = map[string]any{}
	}
	labels["clusterctl.cluster.x-k8s.io"] = ""
	metadata["labels"] = labels
}

// atURL has each webhook of an object called at a URL instead of a Service.
func atURL(node any, url string, authority []byte) {
	switch node := node.(type) {
	case []any:
		for _, child := range node {
			atURL(child, url, authority)
		}
	case map[string]any:
		client, _ := node["clientConfig"].(map[string]any)
		if service, ok := client["service"].(map[string]any); ok {
			node["clientConfig"] = map[string]any{"url": fmt.Sprint(url, service["path"]), "caBundle": authority}
			return
		}
		for _, child := range node {
			atURL(child, url, authority)
		}
	}
}

// servingCertificate writes a certificate for loopback into a directory, as managers read it, and returns it.
func servingCertificate(t *testing.T, dir string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "webhooks"}, NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IsCA: true, BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	err = errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o600),
		os.WriteFile(filepath.Join(dir, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// manage runs kubectl on the management cluster.
func (c *clusterAPI) manage(args ...string) string {
	c.t.Helper()
	out, err := c.management.Command(c.t.Context(), c.kubeconfig, "kubectl", args...).CombinedOutput()
	if err != nil {
		c.t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}
