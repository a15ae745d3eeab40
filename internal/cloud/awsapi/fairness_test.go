// SPDX-License-Identifier: Apache-2.0

package awsapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/iam/identityservice/identityservicetest"
)

// served is the account's AWS APIs behind their one door, with signatures and policies.
type served struct {
	t   *testing.T
	url string
	// admin and second are keys of one user, and other is another user's.
	admin, second, other aws.Credentials
}

// serve serves the APIs over a management plane in memory, which is reached through the functions.
func serve(t *testing.T, through ...func(client.Client) client.Client) *served {
	t.Helper()
	return serveOf(t, config(t), through...)
}

// serveOf is serve with a configuration.
func serveOf(t *testing.T, c Config, through ...func(client.Client) client.Client) *served {
	t.Helper()
	store, dir := identityservicetest.NewMemory(), t.TempDir()
	sealer, err := identityservice.OpenSealer(filepath.Join(dir, "keys.json"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if c.Identity, err = identityservice.New(identityservice.Config{Store: store, Sealer: sealer, Instances: noInstances{}, Region: "us-east-1", Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c.Management = fake.NewClientBuilder().WithScheme(scheme).Build()
	for _, f := range through {
		c.Management = f(c.Management)
	}
	if _, err := identityservice.First(t.Context(), store, identityservice.DefaultAccount, filepath.Join(dir, "credentials"), time.Now()); err != nil {
		t.Fatal(err)
	}
	state, err := store.State()
	if err != nil {
		t.Fatal(err)
	}
	user, _ := state.User(identityservice.DefaultAccount, identityservice.FirstUserName)
	key := state.KeysOf(user.ID)[0]
	server := httptest.NewServer(frontOf(t, c))
	t.Cleanup(server.Close)
	s := &served{t: t, url: server.URL, admin: aws.Credentials{AccessKeyID: key.ID, SecretAccessKey: key.Secret.Reveal()}}

	api := iam.NewFromConfig(aws.Config{Region: "us-east-1", BaseEndpoint: &s.url, Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return s.admin, nil })})
	name := aws.String("other")
	if _, err := api.CreateUser(t.Context(), &iam.CreateUserInput{UserName: name}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.AttachUserPolicy(t.Context(), &iam.AttachUserPolicyInput{UserName: name, PolicyArn: aws.String("arn:aws:iam::aws:policy/AdministratorAccess")}); err != nil {
		t.Fatal(err)
	}
	for user, into := range map[string]*aws.Credentials{"other": &s.other, identityservice.FirstUserName: &s.second} {
		made, err := api.CreateAccessKey(t.Context(), &iam.CreateAccessKeyInput{UserName: &user})
		if err != nil {
			t.Fatal(err)
		}
		*into = aws.Credentials{AccessKeyID: *made.AccessKey.AccessKeyId, SecretAccessKey: *made.AccessKey.SecretAccessKey}
	}
	return s
}

// ask sends a signed request and returns the status, headers and body of the answer.
func (s *served) ask(ctx context.Context, who aws.Credentials, service, method, path, body string, headers ...string) (int, http.Header, string, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, "", err
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	sum := sha256.Sum256([]byte(body))
	if err := v4.NewSigner().SignHTTP(ctx, who, r, hex.EncodeToString(sum[:]), service, "us-east-1", time.Now()); err != nil {
		return 0, nil, "", err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, response.Header, string(text), err
}

// A client that sends as many describe calls as it can, with both keys that a user can have, is throttled by key and by
// user. Another's calls are answered as they were before.
func TestAFloodOfOneClientDelaysNobodyElse(t *testing.T) {
	s := serve(t)
	const asked = 30
	calls := func() []time.Duration {
		t.Helper()
		took := make([]time.Duration, 0, asked)
		for range asked {
			began := time.Now()
			status, _, body, err := s.ask(t.Context(), s.other, "eks", http.MethodGet, "/clusters", "")
			if err != nil || status != http.StatusOK {
				t.Fatalf("%d %s %v", status, body, err)
			}
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		return took
	}
	quiet := calls()
	ctx, cancel := context.WithCancel(t.Context())
	var answered, throttled atomic.Int64
	var flood sync.WaitGroup
	for i := range 16 {
		key := []aws.Credentials{s.admin, s.second}[i%2]
		flood.Go(func() {
			for ctx.Err() == nil {
				switch status, header, _, err := s.ask(ctx, key, "eks", http.MethodGet, "/clusters", ""); {
				case err != nil:
				case status == http.StatusOK:
					answered.Add(1)
				case status == http.StatusTooManyRequests && header.Get("X-Amzn-Errortype") == "ThrottlingException":
					throttled.Add(1)
				}
			}
		})
	}
	for deadline := time.Now().Add(30 * time.Second); throttled.Load() < 200 && time.Now().Before(deadline); {
		<-time.After(time.Millisecond)
	}
	loud := calls()
	cancel()
	flood.Wait()
	t.Logf("median without the flood %v, with it %v, worst %v; of the flood %d were answered and %d throttled", quiet[asked/2], loud[asked/2], loud[asked-1], answered.Load(), throttled.Load())
	if throttled.Load() == 0 {
		t.Error("nothing was throttled: there was no flood")
	}
	if loud[asked-1] > 5*time.Second {
		t.Errorf("a call took %v", loud[asked-1])
	}
}

// What is not there is refused in the form that the clients of the service read, with a 4xx.
func TestWhatIsNotThereInEachProtocol(t *testing.T) {
	s := serve(t)
	const form, json10, json11 = "application/x-www-form-urlencoded", "application/x-amz-json-1.0", "application/x-amz-json-1.1"
	for name, c := range map[string]struct {
		service, method, path, body string
		headers                     []string
		status                      int
		has                         string
	}{
		"an action of EKS":         {"eks", "GET", "/dances/1", "", nil, 404, `"__type":"UnknownOperationException"`},
		"an action of EC2":         {"ec2", "POST", "/", "Action=Dance&Version=2016-11-15", []string{"Content-Type", form}, 400, "<Response><Errors><Error><Code>InvalidAction</Code>"},
		"an action of KMS":         {"kms", "POST", "/", "{}", []string{"Content-Type", json11, "X-Amz-Target", "TrentService.Dance"}, 400, `"__type":"UnknownOperationException"`},
		"an action of Logs":        {"logs", "POST", "/", "{}", []string{"Content-Type", json11, "X-Amz-Target", "Logs_20140328.Dance"}, 400, `"__type":"UnknownOperationException"`},
		"an action of STS":         {"sts", "POST", "/", "Action=Dance&Version=2011-06-15", []string{"Content-Type", form}, 400, "<Code>InvalidAction</Code>"},
		"an action of IAM":         {"iam", "POST", "/", "Action=Dance&Version=2010-05-08", []string{"Content-Type", form}, 400, "<Code>InvalidAction</Code>"},
		"a refused action of STS":  {"sts", "POST", "/", "Action=GetFederationToken&Version=2011-06-15&Name=a", []string{"Content-Type", form}, 400, "<Code>UnsupportedOperation</Code><Message>Muster has no federated users: assume a role</Message>"},
		"a refused action":         {"kms", "POST", "/", `{"KeyId":"x","Plaintext":"eA=="}`, []string{"Content-Type", json11, "X-Amz-Target", "TrentService.Encrypt"}, 400, `"__type":"UnsupportedOperationException"`},
		"a service of JSON 1.0":    {"dynamodb", "POST", "/", "{}", []string{"Content-Type", json10, "X-Amz-Target", "DynamoDB_20120810.ListTables"}, 404, `"__type":"UnknownOperationException"`},
		"a service of JSON 1.1":    {"ecs", "POST", "/", "{}", []string{"Content-Type", json11, "X-Amz-Target", "AmazonEC2ContainerServiceV20141113.ListClusters"}, 404, `"__type":"UnknownOperationException"`},
		"a service with forms":     {"sns", "POST", "/", "Action=ListTopics&Version=2010-03-31", []string{"Content-Type", form}, 404, "<ErrorResponse><Error><Code>UnknownOperationException</Code>"},
		"a service with paths":     {"lambda", "GET", "/2015-03-31/functions", "", nil, 404, `"__type":"UnknownOperationException"`},
		"a service with documents": {"s3", "GET", "/bucket/key", "", nil, 404, "<Error><Code>UnknownOperationException</Code>"},
	} {
		t.Run(name, func(t *testing.T) {
			status, header, body, err := s.ask(t.Context(), s.admin, c.service, c.method, c.path, c.body, c.headers...)
			if err != nil || status != c.status || !strings.Contains(body, c.has) || header.Get("X-Amzn-Requestid") == "" {
				t.Errorf("%d %v %s %v, want %d %s", status, header, body, err, c.status, c.has)
			}
		})
	}
}
