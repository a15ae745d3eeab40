// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// goneMachine copies a machine's client certificate with its key, as root on it can, deletes the machine, and goes on
// with the copy.
func goneMachine(t *testing.T, i *installation) {
	machine, address := i.theMachine()
	node := i.mustKubectl("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}")
	pair, _ := i.muster("exec", machine, "--", "cat", "/var/lib/kubelet/pki/kubelet-client-current.pem")
	certificate, err := tls.X509KeyPair([]byte(pair), []byte(pair))
	if err != nil {
		t.Fatal(err)
	}
	server := i.apiServer()
	asked := func(method, path, body string, want ...int) error {
		code, said, err := server.ask(t.Context(), certificate, method, path, body)
		if err == nil && !slices.Contains(want, code) {
			err = fmt.Errorf("%s %s: %d %s", method, path, code, said)
		}
		return err
	}
	if err := asked(http.MethodGet, "/api/v1/nodes/"+node, "", http.StatusOK); err != nil {
		t.Fatalf("while the machine is there: %v", err)
	}
	// Whoever has the copy makes the Node anew all the time, also in the last moment.
	manifest := fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":%q}}`, node)
	again, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for {
			select {
			case <-again:
				return
			case <-time.After(20 * time.Millisecond):
				_, _, _ = server.ask(t.Context(), certificate, http.MethodPost, "/api/v1/nodes", manifest) // its effect is seen below
			}
		}
	}()
	i.muster("scale", "nodegroup", "default", "0", "--wait")
	i.eventually("the machine is gone", func() error {
		if out := strings.TrimSpace(first(i.muster("get", "machines", "-o", "name"))); out != "" {
			return fmt.Errorf("there is %s", out)
		}
		return nil
	})
	took := i.eventually("the certificate is refused", func() error { return asked(http.MethodGet, "/api/v1/nodes/"+node, "", http.StatusForbidden) })
	t.Logf("refused after %s", took.Round(time.Millisecond))
	i.eventually("its Node is gone", func() error {
		if out := i.mustKubectl("get", "nodes", "-o", "name"); out != "" {
			return fmt.Errorf("there is %s", out)
		}
		return nil
	})
	for _, try := range []struct{ method, path, body string }{
		{http.MethodPost, "/api/v1/nodes", manifest},
		{http.MethodGet, "/api/v1/pods?fieldSelector=spec.nodeName%3D" + node, ""},
		{http.MethodGet, "/api/v1/namespaces/default/secrets/any", ""},
		{http.MethodGet, "/version", ""},
	} {
		code, said, err := server.ask(t.Context(), certificate, try.method, try.path, try.body)
		if want := fmt.Sprintf("machine-gone: the certificate of %s was issued to machine %s, which is gone", node, machine); err != nil || code != http.StatusForbidden || !strings.Contains(said, want) {
			t.Errorf("%s %s: %d, %v: %s; want 403 and %q", try.method, try.path, code, err, said, want)
		}
	}
	close(again)
	<-over
	if out := i.mustKubectl("get", "nodes", "-o", "name"); out != "" {
		t.Errorf("the Node at %s came back: %s", address, out)
	}
	// The next machine may get the address and the name, and joins by a certificate of its own.
	i.muster("scale", "nodegroup", "default", "1", "--wait")
	i.ready()
	if err := asked(http.MethodGet, "/version", "", http.StatusForbidden); err != nil {
		t.Errorf("when another machine is there: %v", err)
	}
}
