// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"muster.dev/muster/internal/iam/ekstoken"
)

// TestRefusedTokenIsTold has tokens refused that are signed with a machine's own credentials for another cluster. Of a
// machine that is Ready they say nothing. When its kubelet does not go on, the machine is told so, until they are over.
//
//story:about iam/authenticator plane/readiness
func TestRefusedTokenIsTold(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.muster("up", "--nodes", "1")
	machine, address := i.theMachine()
	identity := func(want ...string) error {
		out, err := i.kubectl("get", managementContext, "machine", machine, "-o", `jsonpath={.status.phase} {.status.conditions[?(@.type=="Identity")].reason} {.status.conditions[?(@.type=="Identity")].message}`)
		for _, part := range want {
			if err == nil && !strings.Contains(out, part) {
				err = errors.New(out)
			}
		}
		return err
	}
	i.eventually("the machine was let in", func() error { return identity("Ready Admitted") })
	events := i.mustKubectl("get", managementContext, "events", "-A", "-o", `jsonpath={range .items[*]}{.type} {.reason} {.message}{.note}{"\n"}{end}`)
	if strings.Contains(events, "Refused") {
		t.Errorf("a launch that went well warns:\n%s", events)
	}

	raw, _ := strings.CutSuffix(i.askMetadata(address, "meta-data/iam/security-credentials/muster-node-muster"), " 200")
	var keys struct {
		AccessKeyID     string `json:"AccessKeyId"`
		SecretAccessKey string
		Token           string
	}
	if err := json.Unmarshal([]byte(raw), &keys); err != nil || keys.Token == "" {
		t.Fatalf("no credentials of the machine: %v", err)
	}
	server := i.mustKubectl("config", "view", "-o", `jsonpath={.clusters[?(@.name=="muster")].cluster.server}`)
	refused := func() {
		t.Helper()
		token, err := ekstoken.Sign(t.Context(), aws.Config{Region: "us-east-1", Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: keys.AccessKeyID, SecretAccessKey: keys.SecretAccessKey, SessionToken: keys.Token}, nil
		})}, "another", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		_, err = i.kubectl("--kubeconfig=/dev/null", "--server="+server, "--insecure-skip-tls-verify", "--token="+token.Reveal(), "get", "nodes")
		if err == nil || !strings.Contains(err.Error(), "Unauthorized") && !strings.Contains(err.Error(), "must be logged in") {
			t.Fatalf("a token for another cluster is not refused: %v", err)
		}
	}
	refused()
	pid, ok := i.inMachine("kubelet")
	if !ok {
		t.Fatal("no kubelet runs")
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	i.eventually("the machine is not Ready", func() error {
		refused()
		err := identity("NotReady")
		if err != nil && identity("Ready Admitted") != nil {
			t.Errorf("of a machine that is Ready a refused token says: %v", err)
		}
		return err
	})
	i.eventually("the machine is told what is refused", func() error {
		refused()
		return identity("NotReady Refused", "refuses the token that is sent with its session", `did not make for cluster "muster"`)
	})
	if out, _, _ := i.try("status"); !strings.Contains(out, `did not make for cluster "muster"`) {
		t.Errorf("muster status does not say it:\n%s", out)
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	i.eventually("the machine is let in again", func() error { return identity("Ready Admitted") })
}
