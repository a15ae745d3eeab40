// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// auditLine is what the story reads of a line of the security log.
type auditLine struct {
	Kind             string `json:"kind"`
	Level            string `json:"level"`
	AuditID          string `json:"auditID"`
	Stage            string `json:"stage"`
	Verb             string `json:"verb"`
	RequestURI       string `json:"requestURI"`
	ImpersonatedUser struct {
		Username string `json:"username"`
	} `json:"impersonatedUser"`
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	RequestObject  json.RawMessage `json:"requestObject"`
	ResponseObject json.RawMessage `json:"responseObject"`
}

// securityLog reads the security log by the command, as people do.
func (i *installation) securityLog() []auditLine {
	i.t.Helper()
	out, _ := i.muster("logs", "security")
	var lines []auditLine
	for text := range strings.Lines(out) {
		var line auditLine
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			i.t.Fatalf("%v: %.300s", err, text)
		}
		lines = append(lines, line)
	}
	return lines
}

// TestSecurityLog reads Secrets, opens sessions, makes tokens, impersonates and is refused, while the service is
// killed: each is in the security log, once, and no content of a Secret nor a token is in any audit log. When lines are
// gone an Event and a metric say so.
//
//story:about plane/auditlog plane/component cluster/serve
func TestSecurityLog(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.muster("up", "--provider", "simulated", "--nodes", "1")
	i.ready()

	const value = "correct-horse-battery-staple"
	i.mustKubectl("create", "secret", "generic", "seen", "--from-literal=password="+value)
	i.mustKubectl("get", "secret", "seen", "-o", "yaml")
	token := i.mustKubectl("create", "token", "default")
	i.kill("serve") // the lines that follow are written while nobody reads
	// kubectl looks for the pod first, and asks no more if there is none.
	_, _ = i.kubectl("get", "--raw", "/api/v1/namespaces/default/pods/nobody/exec?command=true&stdout=true")
	_, _ = i.kubectl("get", "--raw", "/api/v1/namespaces/default/services/http:nobody:80/proxy/path")
	if _, err := i.kubectl("get", "pods", "--as", "eve"); err == nil {
		t.Fatal("eve may list pods")
	}
	server := i.mustKubectl("config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}")
	if code := i.bearer(server+"/api/v1/namespaces/default/configmaps", token); code != http.StatusForbidden {
		t.Errorf("the default service account lists ConfigMaps: %d", code)
	}
	if code := i.bearer(server+"/api/v1/namespaces/default/pods", "wrong"); code != http.StatusUnauthorized {
		t.Errorf("a wrong token: %d", code)
	}

	has := func(what string, is func(auditLine) bool) {
		i.eventually("the security log has "+what, func() error {
			if slices.ContainsFunc(i.securityLog(), is) {
				return nil
			}
			return errors.New("it has not")
		})
	}
	on := func(resource, subresource, name string) func(auditLine) bool {
		return func(l auditLine) bool {
			return l.ObjectRef.Resource == resource && l.ObjectRef.Subresource == subresource && l.ObjectRef.Name == name && l.Level == "Metadata"
		}
	}
	has("the Secret that was read", func(l auditLine) bool {
		return on("secrets", "", "seen")(l) && l.Verb == "get" && l.User.Username == "muster:administrator"
	})
	has("the token that was made", on("serviceaccounts", "token", "default"))
	has("the session", on("pods", "exec", "nobody"))
	has("the proxied request", on("services", "proxy", "http:nobody:80"))
	has("eve", func(l auditLine) bool {
		return l.ImpersonatedUser.Username == "eve" && l.ResponseStatus.Code == http.StatusForbidden
	})
	has("the service account that was refused", func(l auditLine) bool {
		return l.User.Username == "system:serviceaccount:default:default" && l.ResponseStatus.Code == http.StatusForbidden
	})
	has("the wrong token", func(l auditLine) bool {
		return l.ResponseStatus.Code == http.StatusUnauthorized && strings.HasSuffix(l.RequestURI, "/pods")
	})
	has("a CSR, whole", func(l auditLine) bool {
		return l.ObjectRef.Resource == "certificatesigningrequests" && l.Verb == "create" && len(l.RequestObject) > 0 && len(l.ResponseObject) > 0
	})

	seen := map[string]bool{}
	for _, l := range i.securityLog() {
		key := l.AuditID + " " + l.Stage
		if seen[key] {
			t.Errorf("%s is there twice", key)
		}
		seen[key] = true
		if l.ObjectRef.Resource == "leases" || l.ObjectRef.Resource == "nodes" && l.ObjectRef.Subresource == "status" {
			t.Errorf("a heartbeat: %+v", l)
		}
	}
	for name, log := range i.auditFiles() {
		for _, secret := range []string{value, base64.StdEncoding.EncodeToString([]byte(value)), token, strings.Split(token, ".")[2]} {
			if strings.Contains(log, secret) {
				t.Errorf("%s has a secret", name)
			}
		}
	}
	t.Run("lines that are gone", func(t *testing.T) { linesGone(t, i.in(t)) })
}

// bearer shows a token, and returns the status of the answer.
func (i *installation) bearer(url, token string) int {
	i.t.Helper()
	request, err := http.NewRequestWithContext(i.t.Context(), http.MethodGet, url, nil)
	if err != nil {
		i.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	client := i.clusterClient("")
	response, err := client.Do(request)
	if err != nil {
		i.t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// auditFiles are all audit logs of the cluster.
func (i *installation) auditFiles() map[string]string {
	i.t.Helper()
	paths, err := filepath.Glob(filepath.Join(filepath.Dir(i.cluster().Audit(0)), "*.log"))
	if err != nil || len(paths) < 2 {
		i.t.Fatalf("audit logs: %v, %v", paths, err)
	}
	files := map[string]string{}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			i.t.Fatal(err)
		}
		files[path] = string(raw)
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			i.t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	return files
}

// linesGone takes away what the API server wrote while the service was away.
func linesGone(t *testing.T, i *installation) {
	whole := func() time.Time {
		found := regexp.MustCompile(`(?m)^muster_security_log_whole_since_timestamp_seconds\{cluster="[^"]+"\} (\S+)$`).FindStringSubmatch(i.serviceMetrics())
		if found == nil {
			return time.Time{}
		}
		var seconds float64
		if _, err := fmt.Sscan(found[1], &seconds); err != nil {
			t.Fatal(err)
		}
		return time.UnixMicro(int64(seconds * 1e6))
	}
	before := whole()
	if before.IsZero() || time.Since(before) < time.Second {
		t.Errorf("the log is whole since %s, says the metric", before)
	}
	i.muster("down")
	if err := os.Remove(i.cluster().Audit(0)); err != nil {
		t.Fatal(err)
	}
	i.muster("up")
	i.eventually("an Event says since when the log is whole", func() error {
		out, err := i.kubectl("--context", "muster-management", "-n", "muster", "get", "events.events.k8s.io", "-o", `jsonpath={range .items[?(@.reason=="SecurityLogShort")]}{.type} {.regarding.kind} {.note}{end}`)
		if err == nil && !strings.Contains(out, "Warning Cluster the security lines of the audit log are whole from ") {
			err = fmt.Errorf("it says %q", out)
		}
		return err
	})
	if after := whole(); !after.After(before) {
		t.Errorf("the log is whole since %s, as before", after)
	}
	if !slices.ContainsFunc(i.securityLog(), func(l auditLine) bool { return l.Kind == "Gap" }) {
		t.Error("the log does not say that lines are missing")
	}
}

// serviceMetrics are the service's own.
func (i *installation) serviceMetrics() string {
	i.t.Helper()
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", i.dir.Socket())
	}}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(i.t.Context(), http.MethodGet, "http://muster/metrics", nil)
	if err != nil {
		i.t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		i.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		i.t.Fatal(err)
	}
	return string(raw)
}
