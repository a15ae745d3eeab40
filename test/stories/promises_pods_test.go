// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/test/promise"
)

const promisedPod = `---
apiVersion: v1
kind: Pod
metadata: {name: NAME, labels: {app: NAME}}
spec:
  serviceAccountName: ACCOUNT
  nodeName: NODE
  terminationGracePeriodSeconds: 1
  containers: [{name: workload, image: "muster.dev/workload:v1", imagePullPolicy: IfNotPresent, args: [serve]}]
`

// podsEnd gives pods roles by associations, and ends their sessions in each way.
func (w *promises) podsEnd() {
	var manifest strings.Builder
	associations := map[string]string{}
	machine := w.machines[0]
	for n := range promisedTimes {
		name := fmt.Sprintf("app-%d", n)
		w.aws.must(awsForm("iam", "CreateRole", "RoleName", name, "AssumeRolePolicyDocument", podTrust))
		fmt.Fprintf(&manifest, "---\n{apiVersion: v1, kind: ServiceAccount, metadata: {name: %s}}\n", name)
		manifest.WriteString(strings.NewReplacer("NAME", name, "ACCOUNT", name, "NODE", machine.node).Replace(promisedPod))
		var made struct {
			Association struct{ AssociationID string }
		}
		answer := w.aws.must(eksRequest(http.MethodPost, "/clusters/muster/pod-identity-associations",
			fmt.Sprintf(`{"namespace":"default","serviceAccount":"%s","roleArn":"arn:aws:iam::%s:role/%s","clientRequestToken":"%s"}`, name, iamAccount, name, name)))
		if err := json.Unmarshal([]byte(answer), &made); err != nil {
			w.t.Fatal(err)
		}
		associations[name] = made.Association.AssociationID
	}
	w.apply(manifest.String())
	now := int64(0)
	ends := []struct {
		what string
		do   func(name string) error
	}{
		{"a pod is deleted", func(name string) error {
			return w.client.CoreV1().Pods("default").Delete(w.t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &now})
		}},
		{"an association is removed", func(name string) error {
			w.aws.must(eksRequest(http.MethodDelete, "/clusters/muster/pod-identity-associations/"+associations[name], ""))
			return nil
		}},
		{"a service account is deleted", func(name string) error {
			return w.client.CoreV1().ServiceAccounts("default").Delete(w.t.Context(), name, metav1.DeleteOptions{})
		}},
		{"a role is deleted", func(name string) error {
			w.aws.must(awsForm("iam", "DeleteRole", "RoleName", name))
			return nil
		}},
	}
	for n := range promisedTimes {
		name := fmt.Sprintf("app-%d", n)
		session := w.aws.with(w.podCredentials(machine, name))
		says := func() error {
			answer, err := session.send(awsForm("sts", "GetCallerIdentity"))
			if err == nil && answer.code() != "" {
				err = errors.New(answer.code())
			}
			return err
		}
		if err := says(); err != nil {
			w.t.Fatalf("the session of %s is not good from the start: %v", name, err)
		}
		end := ends[n%len(ends)]
		if err := end.do(name); err != nil {
			w.t.Fatal(err)
		}
		w.within(promise.PodSessionEnded, end.what, func() error {
			switch err := says(); {
			case err == nil:
				return errors.New("STS takes the session")
			case err.Error() != "InvalidClientTokenId":
				return err
			}
			return nil
		})
	}
}

// podCredentials are those that the agent of a machine gives for a token of a pod that runs there.
func (w *promises) podCredentials(machine promisedMachine, pod string) (k keys) {
	w.t.Helper()
	w.eventually("pod "+pod+" has credentials", func() error {
		found, err := w.client.CoreV1().Pods("default").Get(w.t.Context(), pod, metav1.GetOptions{})
		if err != nil {
			return err
		}
		token, err := w.client.CoreV1().ServiceAccounts("default").CreateToken(w.t.Context(), pod, &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			Audiences: []string{"pods.eks.amazonaws.com"}, BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod, UID: found.UID},
		}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		answer, err := w.fromMachine(machine, http.MethodGet, "http://169.254.170.23/v1/credentials", "Authorization", token.Status.Token)
		if err != nil {
			return err
		}
		var given struct{ AccessKeyID, SecretAccessKey, Token string }
		if err := json.Unmarshal([]byte(answer), &given); err != nil {
			return err
		}
		if k = (keys{given.AccessKeyID, given.SecretAccessKey, given.Token}); k.SessionToken == "" {
			return fmt.Errorf("the agent gives %d bytes without credentials", len(answer))
		}
		return nil
	})
	return k
}

// fromMachine asks by HTTP in the network of a machine, on a connection of its own.
func (w *promises) fromMachine(machine promisedMachine, method, url, header, value string) (string, error) {
	var connection net.Conn
	request, err := http.NewRequestWithContext(w.t.Context(), method, url, nil)
	if err != nil {
		return "", err
	}
	if err := host.InNetwork(machine.namespace, func() (err error) {
		connection, err = (&net.Dialer{Timeout: time.Second, FallbackDelay: -1}).DialContext(w.t.Context(), "tcp4", net.JoinHostPort(request.URL.Hostname(), "80"))
		return err
	}); err != nil {
		return "", err
	}
	once := &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return connection, nil }}
	request.Header.Set(header, value)
	response, err := (&http.Client{Transport: once, Timeout: 5 * time.Second}).Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return string(body), err
}
