// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/internal/iam/authenticator"
	"muster.dev/muster/internal/iam/ekstoken"
)

// iamAccount is the one that there is, and creatorARN the first user in it.
const (
	iamAccount = "000000000000"
	creatorARN = "arn:aws:iam::" + iamAccount + ":user/admin"
)

// keys are those of a user, or of a session.
type keys struct {
	AccessKeyID     string `json:"AccessKeyId"`
	SecretAccessKey string
	SessionToken    string
}

// iam is muster's IAM as the tools of people find it, and the cluster that believes it.
type iam struct {
	*installation
	endpoint []string // the environment that says where it is
	admin    []string // and that says who the first user is
	config   *rest.Config
	client   *http.Client // with the certificate by which the API server asks the authenticator
	reviews  string
}

// newIAM finds what a cluster that is up has.
func newIAM(t *testing.T, i *installation) *iam {
	t.Helper()
	w := &iam{installation: i}
	w.readEnvironment()
	config, err := clientcmd.BuildConfigFromFlags("", i.cluster().Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	w.config = rest.AnonymousClientConfig(config)
	w.config.QPS, w.config.Burst = -1, 0
	var ports struct {
		Authenticator int `json:"authenticator"`
	}
	raw, err := os.ReadFile(i.cluster().Ports())
	if err := errors.Join(err, json.Unmarshal(raw, &ports)); err != nil {
		t.Fatal(err)
	}
	w.reviews = fmt.Sprintf("https://127.0.0.1:%d/authenticate", ports.Authenticator)
	credential := filepath.Join(i.cluster().PKI(), "issued", "authenticator-client.pem")
	pair, err := tls.LoadX509KeyPair(credential, credential)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(i.cluster().PKI(), "cluster", "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	w.client = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, MaxIdleConnsPerHost: 64,
	}}
	t.Cleanup(w.client.CloseIdleConnections)
	return w
}

// readEnvironment asks muster for it.
func (w *iam) readEnvironment() {
	w.t.Helper()
	out, _ := w.muster("env", "-o", "json")
	var variables map[string]string
	if err := json.Unmarshal([]byte(out), &variables); err != nil {
		w.t.Fatalf("muster env -o json: %v\n%s", err, out)
	}
	w.endpoint, w.admin = nil, nil
	for name, value := range variables {
		if name == "AWS_SHARED_CREDENTIALS_FILE" || name == "AWS_CONFIG_FILE" {
			w.admin = append(w.admin, name+"="+value)
		} else {
			w.endpoint = append(w.endpoint, name+"="+value)
		}
	}
	slices.Sort(w.endpoint)
	w.admin = append(w.admin, w.endpoint...)
}

// step is the same world for a step of a story.
func (w *iam) step(t *testing.T) *iam {
	t.Helper()
	step := *w
	step.installation = w.in(t)
	return &step
}

// as is the environment of whoever has keys.
func (w *iam) as(k keys) []string {
	return append(slices.Clone(w.endpoint), "AWS_ACCESS_KEY_ID="+k.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+k.SecretAccessKey, "AWS_SESSION_TOKEN="+k.SessionToken)
}

// environmentOf is what a program of somebody of IAM finds.
func (w *iam) environmentOf(who []string) []string {
	return append(slices.DeleteFunc(w.environment(), func(v string) bool { return strings.HasPrefix(v, "AWS_") }), who...)
}

// run runs a program as somebody of IAM, and returns what it prints; the error holds what it complains of.
func (w *iam) run(who []string, program string, args ...string) (string, error) {
	return w.runIn("", who, program, args...)
}

// runIn runs it in a directory.
func (w *iam) runIn(dir string, who []string, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(w.t.Context(), program, args...)
	cmd.Dir = dir
	cmd.Env = w.environmentOf(who)
	var out, talk bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &talk
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err, bytes.TrimSpace(talk.Bytes()))
	}
	return strings.TrimSpace(out.String()), nil
}

// mustAWS runs the AWS CLI as the first user, and reads what it prints.
func (w *iam) mustAWS(into any, args ...string) {
	w.t.Helper()
	out, err := w.aws(w.admin, args...)
	if err == nil && into != nil {
		err = json.Unmarshal([]byte(out), into)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// user makes a user with an access key.
func (w *iam) user(name string) keys {
	w.t.Helper()
	var key struct{ AccessKey keys }
	w.mustAWS(nil, "iam", "create-user", "--user-name", name)
	w.mustAWS(&key, "iam", "create-access-key", "--user-name", name)
	return key.AccessKey
}

// creator are the keys of the first user, as they are in his file.
func (w *iam) creator() keys {
	w.t.Helper()
	raw, err := os.ReadFile(w.dir.IAMCredentials())
	if err != nil {
		w.t.Fatal(err)
	}
	var k keys
	for line := range strings.Lines(string(raw)) {
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), " = "); name {
		case "aws_access_key_id":
			k.AccessKeyID = value
		case "aws_secret_access_key":
			k.SecretAccessKey = value
		}
	}
	return k
}

// token is a new one, for a cluster.
func (w *iam) token(k keys, cluster string) string {
	w.t.Helper()
	token, err := sign(w.t.Context(), k, cluster)
	if err != nil {
		w.t.Fatal(err)
	}
	return token
}

func sign(ctx context.Context, k keys, cluster string) (string, error) {
	token, err := ekstoken.Sign(ctx, aws.Config{Region: "us-east-1", Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: k.AccessKeyID, SecretAccessKey: k.SecretAccessKey, SessionToken: k.SessionToken}, nil
	})}, cluster, time.Now())
	return token.Reveal(), err
}

// review asks the authenticator, as the API server does.
func (w *iam) review(ctx context.Context, token string) (int, authenticationv1.UserInfo, authenticator.Reason, error) {
	var none authenticationv1.UserInfo
	raw, err := json.Marshal(authenticationv1.TokenReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenReview"}, Spec: authenticationv1.TokenReviewSpec{Token: token},
	})
	if err != nil {
		return 0, none, authenticator.Reason{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.reviews, bytes.NewReader(raw))
	if err != nil {
		return 0, none, authenticator.Reason{}, err
	}
	response, err := w.client.Do(request)
	if err != nil {
		return 0, none, authenticator.Reason{}, err
	}
	defer func() { _ = response.Body.Close() }()
	var answer authenticationv1.TokenReview
	err = json.NewDecoder(response.Body).Decode(&answer)
	var reason authenticator.Reason
	if response.StatusCode != http.StatusOK {
		reason = authenticator.ReadReason(response.Header)
	}
	return response.StatusCode, answer.Status.User, reason, err
}

// refused waits until the authenticator refuses a token, with a status and by a rule. It asks the authenticator itself,
// since the API server keeps what it was told. How long that may take TestPromises says.
func (w *iam) refused(what, token string, status int, rule string) authenticator.Reason {
	w.t.Helper()
	var why authenticator.Reason
	took := w.eventually(what, func() error {
		got, user, reason, err := w.review(w.t.Context(), token)
		if err == nil && (got != status || !strings.HasPrefix(reason.Rule, rule)) {
			err = fmt.Errorf("the answer is %d, user %q, %+v", got, user.Username, reason)
		}
		why = reason
		return err
	})
	w.t.Logf("%s: %d by rule %s after %s: %s; %s", what, status, why.Rule, took.Round(time.Millisecond), why.Saw, why.Fix)
	return why
}

// believed sees that both believe a token, so that both have it to forget.
func (w *iam) believed(token, user string) {
	w.t.Helper()
	if code, who, why, err := w.review(w.t.Context(), token); err != nil || code != http.StatusOK || who.Username != user {
		w.t.Fatalf("the authenticator answers %d, user %q, not %q (%+v): %v", code, who.Username, user, why, err)
	}
	if who, err := w.whoami(w.t.Context(), token); err != nil || who.Username != user {
		w.t.Fatalf("the API server takes %q for %q: %v", user, who.Username, err)
	}
}

// forgets waits in the background until the API server, too, does not believe a token any more, which was refused a
// moment ago. The function that it returns waits for the end of that.
func (w *iam) forgets(what, token string) func(*iam) {
	type outcome struct {
		took time.Duration
		err  error
	}
	ended, began := make(chan outcome, 1), time.Now()
	ctx, stop := context.WithTimeout(context.WithoutCancel(w.t.Context()), patience) // the step may end before
	go func() {
		defer stop()
		for {
			_, err := w.whoami(ctx, token)
			took := time.Since(began)
			switch {
			case err != nil && unauthorized(err):
				ended <- outcome{took, nil}
				return
			case ctx.Err() != nil:
				ended <- outcome{took, fmt.Errorf("the last answer is %w", errors.Join(err, ctx.Err()))}
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	return func(w *iam) {
		w.t.Helper()
		o := <-ended
		w.t.Logf("the API server refused the token of %s %s after the authenticator did", what, o.took.Round(100*time.Millisecond))
		if o.err != nil {
			w.t.Errorf("the API server has not forgotten the token of %s after %s: %v", what, o.took, o.err)
		}
	}
}

// unauthorized reports whether the API server says that it does not know who somebody is: kubectl words it in another
// way.
func unauthorized(err error) bool {
	return strings.Contains(err.Error(), "Unauthorized") || strings.Contains(err.Error(), "provide credentials") || strings.Contains(err.Error(), "must be logged in")
}

// whoami asks the API server who the maker of a token is.
func (w *iam) whoami(ctx context.Context, token string) (authenticationv1.UserInfo, error) {
	config := rest.CopyConfig(w.config)
	config.BearerToken = token
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	return w.whoamiBy(ctx, client)
}

// whoamiBy asks by a client that says who it is.
func (w *iam) whoamiBy(ctx context.Context, by *http.Client) (authenticationv1.UserInfo, error) {
	client, err := kubernetes.NewForConfigAndClient(w.config, by)
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	return review.Status.UserInfo, nil
}

// becomes waits until the API server takes the maker of a new token for a user.
func (w *iam) becomes(k keys, user string) {
	w.t.Helper()
	took := w.eventually("a new token makes its maker "+user, func() error {
		who, err := w.whoami(w.t.Context(), w.token(k, "muster"))
		if err == nil && who.Username != user {
			err = fmt.Errorf("it is %q", who.Username)
		}
		return err
	})
	w.t.Logf("%s is let in after %s", user, took.Round(time.Millisecond))
}
