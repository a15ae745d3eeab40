// SPDX-License-Identifier: Apache-2.0

package supportbundle_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/explain/evidence"
	"muster.dev/muster/internal/explain/supportbundle"
	"muster.dev/muster/internal/platform/statedir"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const machine = "i-0123456789abcdef0"

// planted are secrets of every kind that an installation has, each in the form in which programs write it, by what must
// not be in any archive.
func planted(t *testing.T) map[string]string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	block := string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
	encoded := base64.StdEncoding.EncodeToString([]byte(block))
	return map[string]string{
		strings.Split(block, "\n")[1]: block,                         // a key of a certificate
		encoded[60:120]:               "client-key-data: " + encoded, // a kubeconfig
		"c2lnbmF0dXJlLW9mLWEtdG9rZW4": "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW06c2VydmljZWFjY291bnQifQ.c2lnbmF0dXJlLW9mLWEtdG9rZW4",
		"aHR0cHM6Ly9zdHMudXMtZWFzdC0": "token k8s-aws-v1.aHR0cHM6Ly9zdHMudXMtZWFzdC0",
		"zyxwvu9876543210":            "the bootstrap token q1w2e3.zyxwvu9876543210",
		"wJalrXUtnFEMI/K7MDENG/bPxR":  "aws_secret_access_key = 'wJalrXUtnFEMI/K7MDENG/bPxR'",
		"IQoJb3JpZ2luX2VjENX//////":   "AWS_SESSION_TOKEN=IQoJb3JpZ2luX2VjENX//////",
		"hunter2-of-the-registry":     `{"auths":{"r.example":{"auth":"hunter2-of-the-registry"}}}`,
		"hunter2-of-the-proxy":        "HTTPS_PROXY=http://anna:hunter2-of-the-proxy@proxy:3128",
		"hunter2-of-a-database":       `level=error msg="cannot connect" password="hunter2-of-a-database"`,
		"hunter2-of-a-request":        "Authorization: Bearer hunter2-of-a-request",
		"deadbeefdeadbeefdeadbeefdea": "https://sts/?X-Amz-Signature=deadbeefdeadbeefdeadbeefdea",
	}
}

// world is a configuration that has each of the texts wherever a stranger or a program may write.
func world(t *testing.T, texts map[string]string) supportbundle.Config {
	t.Helper()
	all := ""
	for _, text := range texts {
		all += "\n" + text + "\n"
	}
	path := t.TempDir()
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
	dir, err := statedir.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	quoted, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	audit := fmt.Sprintf(`{"kind":"Event","verb":"create","requestURI":"/exec?command=only-in-a-query","user":{"username":"anna"},"requestObject":{"data":"only-in-a-body"},"responseObject":%s,"responseStatus":{"code":403,"message":%s}}`, quoted, quoted)
	for name, text := range map[string]string{
		dir.Log("guard"): all, dir.Cluster("home").Log("kube-apiserver"): all, dir.Cluster("home").Audit(0): audit + "\nonly-in-a-torn-line\n",
		filepath.Join(dir.MachineLogs(machine), "kubelet.log"): all, dir.IAMCredentials(): "only-in-a-file-of-the-state-directory",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	meta := metav1.ObjectMeta{Name: machine, Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "only-in-an-annotation", "x": all}}
	seen := diagnosis.Evidence{Object: "machine/" + machine, Text: all}
	return supportbundle.Config{
		Reports: diagnosis.Overview{Reports: []diagnosis.Report{{Kind: "machine", Name: machine, Other: []diagnosis.Evidence{seen}}}, Unseen: []diagnosis.Unseen{{What: "a log", Why: all}}},
		Facts:   []diagnosis.Facts{{Kind: "machine", Name: machine, Names: map[string]string{"$MACHINE": machine}, Evidence: []diagnosis.Evidence{seen}}},
		Snapshot: &evidence.Snapshot{
			At:       noon,
			Clusters: []v1alpha1.Cluster{{ObjectMeta: metav1.ObjectMeta{Name: "home"}, Spec: v1alpha1.ClusterSpec{Name: "home"}}},
			Groups:   []v1alpha1.NodeGroup{{Spec: v1alpha1.NodeGroupSpec{LaunchTemplate: &v1alpha1.NodeGroupLaunchTemplate{UserData: "only-in-user-data " + all}}}},
			Machines: []v1alpha1.Machine{{ObjectMeta: meta, Spec: v1alpha1.MachineSpec{ClusterName: "home", Provider: v1alpha1.ProviderLocal, UserData: []byte("only-in-user-data " + all)}}},
			Of: map[string]evidence.Cluster{"home": {
				Nodes:    []corev1.Node{{ObjectMeta: meta}},
				Requests: []certificatesv1.CertificateSigningRequest{{Spec: certificatesv1.CertificateSigningRequestSpec{Username: all, Request: []byte(all)}}},
				Events:   map[string][]corev1.Event{"csr-1": {{Message: all}}},
			}},
		},
		Secrets: map[string][]string{"home": {"default/database"}},
		Status:  map[string]any{"notes": []string{all}},
		Dir:     dir, Now: noon,
	}
}

// read unpacks an archive: the content of each file by its name.
func read(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	compressed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for archive := tar.NewReader(compressed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		if header.Mode != 0o600 || header.Uid != 0 || !header.ModTime.Equal(noon) {
			t.Errorf("%s: mode %o, user %d, %s", header.Name, header.Mode, header.Uid, header.ModTime)
		}
		found[header.Name] = string(content)
	}
}

// No file of an archive has a secret of any kind, wherever one was written; the archive says what it left out.
func TestNoSecretIsInAnArchive(t *testing.T) {
	t.Parallel()
	secrets := planted(t)
	cfg := world(t, secrets)
	path := filepath.Join(t.TempDir(), "b.tar.gz")
	if err := supportbundle.Make(t.Context(), cfg).Save(path); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	files := read(t, path)
	for _, name := range []string{
		"README.txt", "contents.json", "diagnosis.json", "evidence.json", "status.json", "versions.json", "management/clusters.json", "management/machines.json", "management/nodegroups.json",
		"clusters/home/nodes.json", "clusters/home/requests.json", "clusters/home/events.json", "clusters/home/secrets.txt",
		"logs/account/guard.log", "logs/clusters/home/kube-apiserver.log", "logs/clusters/home/audit.log", "logs/machines/" + machine + "/kubelet.log",
	} {
		if files[name] == "" {
			t.Errorf("%s is not there", name)
		}
	}
	for name, content := range files {
		for secret := range secrets {
			if strings.Contains(content, secret) || strings.Contains(content, base64.StdEncoding.EncodeToString([]byte(secret))) {
				t.Errorf("%s has %q", name, secret)
			}
		}
		if strings.Contains(content, "only-in-") {
			t.Errorf("%s has what is left out whole:\n%.2000s", name, content)
		}
	}
	for _, want := range []string{"contents of Secrets", "logs of pods", "user data", `"private key"`, `"sha256"`, "a log"} {
		if !strings.Contains(files["contents.json"], want) {
			t.Errorf("contents.json does not say %q:\n%s", want, files["contents.json"])
		}
	}
	if files["clusters/home/secrets.txt"] != "default/database\n" || !strings.Contains(files["logs/clusters/home/audit.log"], `"code":403`) {
		t.Errorf("%q\n%s", files["clusters/home/secrets.txt"], files["logs/clusters/home/audit.log"])
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".new-*")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

// Without a status, and without the management plane, the logs are there still.
func TestWithoutThePlane(t *testing.T) {
	t.Parallel()
	cfg := world(t, nil)
	cfg.Status, cfg.NoStatus = nil, "everything is stopped"
	cfg.Snapshot = &evidence.Snapshot{Of: map[string]evidence.Cluster{"home": {}}}
	files, err := supportbundle.Make(t.Context(), cfg).Files()
	if err != nil || !strings.Contains(string(files["contents.json"]), "everything is stopped") || len(files["logs/machines/"+machine+"/kubelet.log"]) == 0 && len(files["logs/clusters/home/audit.log"]) == 0 {
		t.Errorf("%v: %s", err, files["contents.json"])
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	cfg := world(t, nil)
	var lines strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&lines, "line %d %s\n", i, strings.Repeat("x", 200))
	}
	if err := os.WriteFile(cfg.Dir.Log("guard"), []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 1200 {
		cfg.Snapshot.Updates = append(cfg.Snapshot.Updates, v1alpha1.Update{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i)}})
	}
	for i := range 20 {
		m := cfg.Snapshot.Machines[0]
		m.Name = fmt.Sprintf("i-%017d", i)
		cfg.Snapshot.Machines = append(cfg.Snapshot.Machines, m)
	}
	files, err := supportbundle.Make(t.Context(), cfg).Files()
	if err != nil {
		t.Fatal(err)
	}
	log := string(files["logs/account/guard.log"])
	if len(log) > 256<<10 || !strings.HasSuffix(log, "line 4999 "+strings.Repeat("x", 200)+"\n") || !strings.HasPrefix(log, "line ") {
		t.Errorf("%d bytes, from %.20q", len(log), log)
	}
	for _, want := range []string{"earlier lines of logs/account/guard.log", "200 objects of management/updates.json", "logs of 5 machines"} {
		if !strings.Contains(string(files["contents.json"]), want) {
			t.Errorf("contents.json does not say %q:\n%s", want, files["contents.json"])
		}
	}
}

// A file that is there stays as it is, be it a link that leads nowhere.
func TestNothingIsOverwritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	there, link := filepath.Join(dir, "there"), filepath.Join(dir, "link")
	if err := os.WriteFile(there, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "nowhere"), link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{there, link, filepath.Join(dir, "none", "x")} {
		if err := supportbundle.New(noon).Save(name); err == nil {
			t.Errorf("%s was written", name)
		}
	}
	content, err := os.ReadFile(there)
	if entries, unread := os.ReadDir(dir); err != nil || unread != nil || !bytes.Equal(content, []byte("mine")) || len(entries) != 2 {
		t.Errorf("%q, %v, %v", content, err, entries)
	}
}
