// SPDX-License-Identifier: Apache-2.0

package awsapi

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// A request without a signature is refused in the form that the clients of its service read.
func TestUnsignedRequestsOfEachService(t *testing.T) {
	s := serve(t)
	const form, json11 = "application/x-www-form-urlencoded", "application/x-amz-json-1.1"
	for name, c := range map[string]struct {
		method, path, body string
		headers            map[string]string
		status             int
		has                string
	}{
		"EC2":             {"POST", "/", "Action=DescribeInstances&Version=2016-11-15", map[string]string{"Content-Type": form}, 403, "<Response><Errors><Error><Code>MissingAuthenticationToken</Code>"},
		"EC2 by GET":      {"GET", "/?Action=DescribeInstances&Version=2016-11-15", "", nil, 403, "<Response><Errors><Error><Code>MissingAuthenticationToken</Code>"},
		"Auto Scaling":    {"POST", "/", "Action=DescribeTags&Version=2011-01-01", map[string]string{"Content-Type": form}, 403, `<ErrorResponse xmlns="http://autoscaling.amazonaws.com/doc/2011-01-01/">`},
		"EKS":             {"GET", "/clusters", "", nil, 403, `{"__type":"MissingAuthenticationTokenException"`},
		"EFS":             {"GET", "/2015-02-01/file-systems", "", nil, 403, `{"__type":"MissingAuthenticationTokenException"`},
		"KMS":             {"POST", "/", "{}", map[string]string{"Content-Type": json11, "X-Amz-Target": "TrentService.ListKeys"}, 400, `{"__type":"MissingAuthenticationTokenException"`},
		"half a header":   {"GET", "/clusters", "", map[string]string{"Authorization": "AWS4-HMAC-SHA256 Credential=x"}, 403, `{"__type":"IncompleteSignatureException"`},
		"IAM":             {"POST", "/", "Action=ListUsers&Version=2010-05-08", map[string]string{"Content-Type": form}, 403, `<ErrorResponse xmlns="https://iam.amazonaws.com/doc/2010-05-08/">`},
		"a form of STS":   {"POST", "/", "Action=GetCallerIdentity&Version=2011-06-15", map[string]string{"Content-Type": form}, 403, `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">`},
		"a browser's":     {"GET", "/favicon.ico", "", nil, 400, "<Code>InvalidAction</Code>"},
		"a large form":    {"POST", "/", "Action=DescribeInstances&Version=2016-11-15&x=" + strings.Repeat("a", 300<<10), map[string]string{"Content-Type": form}, 413, "<Code>RequestEntityTooLarge</Code>"},
		"a version of no": {"POST", "/", "Action=ListTopics&Version=2010-03-31", map[string]string{"Content-Type": form}, 400, "<Code>InvalidAction</Code>"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), c.method, s.url+c.path, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			for key, value := range c.headers {
				r.Header.Set(key, value)
			}
			if status, body := answered(t, r); status != c.status || !strings.Contains(body, c.has) {
				t.Errorf("%d %s, want %d %s", status, body, c.status, c.has)
			}
		})
	}
}

// EC2 and Auto Scaling take a GET, signed in its header or presigned.
func TestGetRequests(t *testing.T) {
	s := serve(t)
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	for service, query := range map[string]string{"ec2": "Action=Dance&Version=2016-11-15", "autoscaling": "Action=Dance&Version=2011-01-01"} {
		status, _, body, err := s.ask(t.Context(), s.admin, service, http.MethodGet, "/?"+query, "")
		if err != nil || status != http.StatusBadRequest || !strings.Contains(body, "<Code>InvalidAction</Code>") || !strings.Contains(body, "Dance") {
			t.Errorf("%s: %d %s %v", service, status, body, err)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/?"+query+"&X-Amz-Expires=60", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		presigned, _, err := v4.NewSigner().PresignHTTP(t.Context(), s.admin, r, empty, service, "us-east-1", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if r, err = http.NewRequestWithContext(t.Context(), http.MethodGet, presigned, http.NoBody); err != nil {
			t.Fatal(err)
		}
		if status, body := answered(t, r); status != http.StatusBadRequest || !strings.Contains(body, "<Code>InvalidAction</Code>") || !strings.Contains(body, "Dance") {
			t.Errorf("%s, presigned: %d %s", service, status, body)
		}
	}
}

func answered(t *testing.T, r *http.Request) (int, string) {
	t.Helper()
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}
