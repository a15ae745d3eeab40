// SPDX-License-Identifier: Apache-2.0

package ecrcredential

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	credentialprovider "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
)

// maxMessage bounds a request of the kubelet and an answer of ECR, in bytes.
const maxMessage = 1 << 20

const apiVersion = "credentialprovider.kubelet.k8s.io/v1"

// registryForm is the name of a registry of ECR (cloud-provider-aws, cmd/ecr-credential-provider,
// ecrPrivateHostPattern).
var registryForm = regexp.MustCompile(`^([0-9]{12})\.dkr\.ecr\.([a-z0-9-]+)\.(amazonaws\.com(?:\.cn)?)$`)

// Registry is a registry of ECR.
type Registry struct{ Host, Account, Region, Domain string }

// RegistryOf finds the registry of an image.
func RegistryOf(image string) (Registry, error) {
	host, _, _ := strings.Cut(image, "/")
	found := registryForm.FindStringSubmatch(host)
	if found == nil {
		return Registry{}, fmt.Errorf("the image %.300q is not of a registry of ECR, which are called ACCOUNT.dkr.ecr.REGION.amazonaws.com", image)
	}
	return Registry{Host: host, Account: found[1], Region: found[2], Domain: found[3]}, nil
}

// Login is a password for the registry of an account.
type Login struct {
	User, Password string
	Expires        time.Time
	// Host is the registry's.
	Host string
}

// String keeps the password out of what is printed.
func (l Login) String() string { return "login of " + l.User }

// GoString keeps the password out of what is printed.
func (l Login) GoString() string { return l.String() }

// Answer reads the kubelet's request and writes the answer. Get makes the login.
func Answer(ctx context.Context, in io.Reader, out io.Writer, now time.Time, get func(context.Context, Registry) (Login, error)) error {
	content, err := io.ReadAll(io.LimitReader(in, maxMessage))
	if err != nil {
		return fmt.Errorf("reading the kubelet's request: %w", err)
	}
	var request credentialprovider.CredentialProviderRequest
	if err := json.Unmarshal(content, &request); err != nil {
		return fmt.Errorf("reading the kubelet's request: %w", err)
	}
	if request.APIVersion != apiVersion || request.Kind != "CredentialProviderRequest" {
		return fmt.Errorf("the request is a %.64q of %.64q: it must be a CredentialProviderRequest of %s", request.Kind, request.APIVersion, apiVersion)
	}
	registry, err := RegistryOf(request.Image)
	if err != nil {
		return err
	}
	login, err := get(ctx, registry)
	if err != nil {
		return err
	}
	if login.Host != registry.Host { // whose image it is, the pod says
		return fmt.Errorf("no password goes to %s: that of the machine's role is for %s", registry.Host, login.Host)
	}
	response := credentialprovider.CredentialProviderResponse{
		TypeMeta:      metav1.TypeMeta{APIVersion: apiVersion, Kind: "CredentialProviderResponse"},
		CacheKeyType:  credentialprovider.RegistryPluginCacheKeyType,
		CacheDuration: &metav1.Duration{Duration: max(login.Expires.Sub(now)/2, 0)},
		Auth:          map[string]credentialprovider.AuthConfig{registry.Host: {Username: login.User, Password: login.Password}},
	}
	return json.NewEncoder(out).Encode(response)
}

// Get asks ECR for a login, with the credentials of AWS's SDK.
func Get(ctx context.Context, registry Registry) (Login, error) {
	config, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithRegion(registry.Region))
	if err != nil {
		return Login{}, fmt.Errorf("reading the AWS configuration: %w", err)
	}
	return get(ctx, config, "https://api.ecr."+registry.Region+"."+registry.Domain+"/", registry, time.Now())
}

func get(ctx context.Context, config aws.Config, endpoint string, registry Registry, now time.Time) (Login, error) {
	credentials, err := config.Credentials.Retrieve(ctx)
	if err != nil {
		return Login{}, fmt.Errorf("finding the credentials of the machine's role: %w", err)
	}
	const body = "{}"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(body))
	if err != nil {
		return Login{}, fmt.Errorf("asking ECR for a password: %w", err)
	}
	request.Header.Set("Content-Type", "application/x-amz-json-1.1")
	request.Header.Set("X-Amz-Target", "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken")
	sum := sha256.Sum256([]byte(body))
	if err := v4.NewSigner().SignHTTP(ctx, credentials, request, hex.EncodeToString(sum[:]), "ecr", registry.Region, now); err != nil {
		return Login{}, fmt.Errorf("signing the request for a password: %w", err)
	}
	answer, err := config.HTTPClient.Do(request)
	if err != nil {
		return Login{}, fmt.Errorf("asking ECR for a password: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(answer.Body, maxMessage))
	if err != nil {
		return Login{}, fmt.Errorf("asking ECR for a password: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return Login{}, fmt.Errorf("asking ECR for a password: %s: %.500s", answer.Status, content)
	}
	return parse(content)
}

// parse reads ECR's answer.
func parse(content []byte) (Login, error) {
	var answer struct {
		AuthorizationData []struct {
			AuthorizationToken string  `json:"authorizationToken"`
			ExpiresAt          float64 `json:"expiresAt"`
			ProxyEndpoint      string  `json:"proxyEndpoint"`
		} `json:"authorizationData"`
	}
	if err := json.Unmarshal(content, &answer); err != nil || len(answer.AuthorizationData) == 0 {
		return Login{}, errors.New("ECR's answer has no password") // which is not printed: it might have one
	}
	data := answer.AuthorizationData[0]
	token, err := base64.StdEncoding.DecodeString(data.AuthorizationToken)
	user, password, ok := strings.Cut(string(token), ":")
	if err != nil || !ok || user == "" || password == "" {
		return Login{}, errors.New("ECR's answer has no password")
	}
	host, ok := strings.CutPrefix(data.ProxyEndpoint, "https://")
	if _, err := RegistryOf(host); err != nil || !ok {
		return Login{}, fmt.Errorf("ECR's answer has a password for %.300q, which is not a registry of ECR", data.ProxyEndpoint)
	}
	return Login{User: user, Password: password, Expires: time.Unix(int64(data.ExpiresAt), 0), Host: host}, nil
}
