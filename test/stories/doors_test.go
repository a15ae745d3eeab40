// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"muster.dev/muster/internal/machine/machine/local"
)

// portForward asks a pod for its name through kubectl port-forward.
func (i *installation) portForward(pod string) {
	i.t.Helper()
	ctx, cancel := context.WithCancel(i.t.Context())
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(programs(i.t), "kubectl"), "port-forward", pod, ":8080")
	cmd.Env = i.environment()
	out, err := cmd.StdoutPipe()
	if err != nil {
		i.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		i.t.Fatal(err)
	}
	defer func() { cancel(); _ = cmd.Wait() }()
	line := make([]byte, 256)
	n, err := out.Read(line)
	if err != nil {
		i.t.Fatalf("port-forward to %s said nothing: %v", pod, err)
	}
	match := regexp.MustCompile(`127\.0\.0\.1:(\d+)`).FindSubmatch(line[:n])
	if match == nil {
		i.t.Fatalf("port-forward to %s said %q", pod, line[:n])
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+string(match[1])+"/", http.NoBody)
	if err != nil {
		i.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		i.t.Fatalf("asking through port-forward: %v", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if body, err := io.ReadAll(answer.Body); err != nil || !strings.Contains(string(body), pod) {
		i.t.Errorf("pod %s answered %q through port-forward (%v)", pod, body, err)
	}
}

// mustCommandLine is the argument list of a running process.
func (i *installation) mustCommandLine(name string) []string {
	i.t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", i.processes()[name].PID))
	if err != nil {
		i.t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(raw), "\x00"), "\x00")
}

// inMachine finds a daemon of the first machine, in order of names.
func (i *installation) inMachine(program string) (pid int, ok bool) {
	i.t.Helper()
	running := i.machines()
	for _, id := range slices.Sorted(maps.Keys(running)) {
		return i.inMachineOf(running[id], program)
	}
	return 0, false
}

// machines are the first processes of machines that run, of whatever user of the host they are.
func (i *installation) machines() map[string]int {
	i.t.Helper()
	running, err := local.Running(i.dir)
	if err != nil {
		i.t.Fatal(err)
	}
	return running
}

// inMachineOf finds a program of the machine with a first process: one that is in its process namespace.
func (i *installation) inMachineOf(first int, program string) (pid int, ok bool) {
	i.t.Helper()
	namespace, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", first))
	if err != nil {
		return 0, false
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		i.t.Fatal(err)
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if other, err := os.Readlink(filepath.Join("/proc", entry.Name(), "ns/pid")); err != nil || other != namespace {
			continue
		}
		raw, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		called, _, _ := strings.Cut(string(raw), "\x00")
		if filepath.Base(called) == program {
			return pid, true
		}
	}
	return 0, false
}

// killInMachine ends one daemon of the first machine in the hardest way.
func (i *installation) killInMachine(program string) int {
	i.t.Helper()
	pid, ok := i.inMachine(program)
	if !ok {
		i.t.Fatalf("no %s runs on the first machine", program)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		i.t.Fatal(err)
	}
	return pid
}

// secretsSealed reads a Secret from etcd itself.
func secretsSealed(t *testing.T, i *installation) {
	i.mustKubectl("create", "secret", "generic", "sealed", "--from-literal=word=correct-horse-battery-staple")
	var ports struct {
		Etcd int `json:"etcd"`
	}
	raw, err := os.ReadFile(i.cluster().Ports())
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &ports); err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	ca, err := os.ReadFile(filepath.Join(i.cluster().PKI(), "etcd", "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	pool.AppendCertsFromPEM(ca)
	credential := filepath.Join(i.cluster().PKI(), "issued", "etcd-probe.pem")
	pair, err := tls.LoadX509KeyPair(credential, credential)
	if err != nil {
		t.Fatal(err)
	}
	endpoint := fmt.Sprintf("https://127.0.0.1:%d", ports.Etcd)
	open := func(config *tls.Config) (*clientv3.GetResponse, error) {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, TLS: config, DialTimeout: 5 * time.Second})
		if err != nil {
			return nil, err
		}
		defer func() { _ = client.Close() }()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		return client.Get(ctx, "/registry/secrets/default/sealed")
	}
	answer, err := open(&tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	if len(answer.Kvs) != 1 {
		t.Fatalf("etcd has %d keys for the secret, not 1", len(answer.Kvs))
	}
	if value := answer.Kvs[0].Value; bytes.Contains(value, []byte("correct-horse")) || !bytes.HasPrefix(value, []byte("k8s:enc:secretbox:")) {
		t.Errorf("the secret is not sealed in etcd: it begins with %.40q", value)
	}
	if _, err := open(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}); err == nil {
		t.Error("etcd answers a client without a certificate")
	}
}

// strangers asks the API server without credentials.
func strangers(t *testing.T, i *installation) {
	status, err := i.status()
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	ca, err := os.ReadFile(filepath.Join(i.cluster().PKI(), "cluster", "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	pool.AppendCertsFromPEM(ca)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}}
	for path, want := range map[string]int{
		"/healthz": http.StatusOK, "/livez": http.StatusOK, "/readyz": http.StatusOK,
		"/api/v1/namespaces/kube-public/configmaps/cluster-info":     http.StatusOK,
		"/api/v1/namespaces/kube-public/configmaps/kube-root-ca.crt": http.StatusUnauthorized,
		"/version": http.StatusUnauthorized, "/api": http.StatusUnauthorized, "/metrics": http.StatusUnauthorized,
		"/api/v1/nodes": http.StatusUnauthorized, "/apis/certificates.k8s.io/v1/certificatesigningrequests": http.StatusUnauthorized,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, status.Clusters[0].Endpoint+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("a stranger gets %d for %s, not %d", answer.StatusCode, path, want)
		}
	}
}
