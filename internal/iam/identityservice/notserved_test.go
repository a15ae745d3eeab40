// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"muster.dev/muster/internal/aws/sigv4"
)

// A service without a handler is refused in the form of its own protocol: XML would show as a fault of the AWS CLI.
func TestAServiceWithoutAHandlerIsRefusedInItsOwnProtocol(t *testing.T) {
	w := newWorld(t, nil)
	ask := func(path, service string) (int, http.Header, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if service != "" {
			if err := v4.NewSigner().SignHTTP(t.Context(), aws.Credentials{AccessKeyID: w.key.ID, SecretAccessKey: w.key.Secret.Reveal()}, request,
				sigv4.EmptyPayload, service, region, time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		return response.StatusCode, response.Header, string(body)
	}
	for _, path := range []string{"/clusters", "/clusters/muster", "/clusters?maxResults=100", "/tags/arn%3Aaws%3Aeks%3Aeu-west-1%3A000000000000%3Acluster%2Fmuster"} {
		status, header, body := ask(path, "eks")
		var told struct {
			Message string `json:"message"`
			Type    string `json:"__type"`
		}
		if err := json.Unmarshal([]byte(body), &told); err != nil {
			t.Fatalf("%s: %v: %s", path, err, body)
		}
		if status != http.StatusNotFound || header.Get("X-Amzn-Errortype") != "UnknownOperationException" || told.Type != "UnknownOperationException" ||
			!strings.Contains(told.Message, "this request is for the service eks:") {
			t.Errorf("%s: %d %v %+v", path, status, header, told)
		}
		id := header.Get("X-Amzn-Requestid")
		for _, want := range []string{"api=eks", "outcome=UnknownOperationException", "access_key_id=" + w.key.ID, "request_id=" + id + " "} {
			if id == "" || !strings.Contains(w.log.String(), want) {
				t.Errorf("%s: the log does not say %s:\n%s", path, want, w.log)
			}
		}
	}
	for _, service := range []string{"", "sts", "iam"} {
		if _, _, body := ask("/clusters", service); !strings.Contains(body, "<Code>InvalidAction</Code>") {
			t.Errorf("signed for %q: %s", service, body)
		}
	}
}

// Requests for other services are answered as their clients read it, with the service's name and what to unset.
func TestOtherServicesAreNamed(t *testing.T) {
	w := newWorld(t, nil)
	fine := func(service, told string) {
		t.Helper()
		for _, want := range []string{"UnknownOperationException", "this request is for the service " + service + ":", "unset AWS_ENDPOINT_URL AWS_CONFIG_FILE "} {
			if !strings.Contains(told, want) {
				t.Errorf("%s: %s, want %s", service, told, want)
			}
		}
	}
	_, err := ec2.NewFromConfig(w.config(w.admin())).DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{})
	if code(err) != "UnknownOperationException" {
		t.Error(err)
	}
	fine("ec2", err.Error())
	for _, c := range []struct{ service, path, contentType, body, form string }{
		{"s3", "/bucket/key", "", "", "<Error><Code>UnknownOperationException</Code><Message>"},
		{"autoscaling", "/", "application/x-www-form-urlencoded; charset=utf-8", "Action=DescribeTags&Version=2011-01-01", "<ErrorResponse><Error><Code>UnknownOperationException</Code><Message>"},
		{"dynamodb", "/", "application/x-amz-json-1.0", "{}", `{"__type":"UnknownOperationException","message":"`},
		{"lambda", "/2015-03-31/functions/", "application/json", "", `{"__type":"UnknownOperationException","message":"`},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		if c.contentType != "" {
			request.Header.Set("Content-Type", c.contentType)
		}
		sum := sha256.Sum256([]byte(c.body))
		if err := v4.NewSigner().SignHTTP(t.Context(), aws.Credentials{AccessKeyID: w.key.ID, SecretAccessKey: w.key.Secret.Reveal()}, request,
			hex.EncodeToString(sum[:]), c.service, region, time.Now()); err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		fine(c.service, string(body))
		if response.StatusCode != http.StatusNotFound || !strings.Contains(string(body), c.form) {
			t.Errorf("%s: %d %s", c.service, response.StatusCode, body)
		}
	}
}
