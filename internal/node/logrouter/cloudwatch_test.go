// SPDX-License-Identifier: Apache-2.0

package logrouter

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"muster.dev/muster/internal/node/fluentbit"
)

// service answers as CloudWatch Logs does: no group and no stream is there before it is made.
type service struct {
	t       *testing.T
	asked   []string
	there   map[string]bool
	refuses map[string]string // codes, by action
	bodies  []string
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	raw, err := io.ReadAll(r.Body)
	var in struct{ LogGroupName, LogStreamName string }
	if err != nil || json.Unmarshal(raw, &in) != nil {
		s.t.Errorf("%s: %s %v", action, raw, err)
	}
	if got := r.Header.Get("Authorization"); !strings.Contains(got, "/us-east-1/logs/aws4_request") {
		s.t.Errorf("Authorization %q", got)
	}
	s.asked, s.bodies = append(s.asked, action), append(s.bodies, string(raw))
	stream := in.LogGroupName + ":" + in.LogStreamName
	code := s.refuses[action]
	switch {
	case code != "":
	case action == "CreateLogGroup" || action == "CreateLogStream":
		if action == "CreateLogStream" && !s.there[in.LogGroupName+":"] {
			code = notFound
		} else if s.there[stream] {
			code = alreadyExists
		}
		s.there[stream] = s.there[stream] || code == ""
	case action == "PutRetentionPolicy":
	case !s.there[stream]:
		code = notFound
	}
	if code != "" {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"__type":"com.amazonaws.logs#` + code + `","message":"no"}`))
	}
}

func newService(t *testing.T) (*service, *CloudWatch, *int) {
	t.Helper()
	s := &service{t: t, there: map[string]bool{}, refuses: map[string]string{}}
	server := httptest.NewTLSServer(s)
	t.Cleanup(server.Close)
	authorities, asked := filepath.Join(t.TempDir(), "ca.pem"), 0
	if err := os.WriteFile(authorities, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return s, &CloudWatch{Endpoint: server.URL, Region: "us-east-1", Authorities: authorities, Role: func(context.Context) (aws.Credentials, error) {
		asked++
		return aws.Credentials{AccessKeyID: "ASIA", SecretAccessKey: "s", SessionToken: "t", Expires: time.Now().Add(time.Hour)}, nil
	}}, &asked
}

var one = []Event{{time.UnixMilli(1_800_000_000_123), "hello"}}

func TestPutMakesWhatIsMissing(t *testing.T) {
	s, c, roles := newService(t)
	to := fluentbit.Output{Group: "g", CreateGroup: true, Retention: 60}
	for _, step := range []struct {
		before func()
		want   string
		fails  string
	}{
		{nil, "CreateLogStream CreateLogGroup PutRetentionPolicy CreateLogStream PutLogEvents", ""},
		{nil, "PutLogEvents", ""},
		{func() { s.there["g:s"] = false }, "PutLogEvents", notFound},
		{nil, "CreateLogStream PutLogEvents", ""},
		{func() { s.refuses["PutLogEvents"] = "ExpiredTokenException" }, "PutLogEvents", "ExpiredTokenException"},
		{func() { s.refuses["PutLogEvents"] = "AccessDeniedException" }, "PutLogEvents", "AccessDeniedException"},
		{func() {
			s.refuses = map[string]string{}
			s.there["g:"] = false
			s.there["g:s"] = false
			to.CreateGroup = false
		}, "PutLogEvents", notFound},
		{nil, "CreateLogStream", notFound},
	} {
		if step.before != nil {
			step.before()
		}
		s.asked = nil
		err := c.Put(t.Context(), to, "s", one)
		if got := strings.Join(s.asked, " "); got != step.want || (err == nil) != (step.fails == "") || err != nil && !strings.Contains(err.Error(), step.fails) {
			t.Errorf("asked %s, %v, want %s", got, err, step.want)
		}
		if _, ok := errors.AsType[*Refused](err); ok {
			t.Errorf("%v is for good", err)
		}
	}
	if *roles != 2 {
		t.Errorf("the role's credentials were got %d times, want once and after those that had expired", *roles)
	}
	if got := s.bodies[4]; got != `{"logGroupName":"g","logStreamName":"s","logEvents":[{"timestamp":1800000000123,"message":"hello"}]}` {
		t.Error(got)
	}
}

// A request that CloudWatch Logs will never take is refused for good; a service of another authority is asked nothing.
func TestPutIsRefused(t *testing.T) {
	s, c, _ := newService(t)
	to := fluentbit.Output{Group: "g", CreateGroup: true}
	s.refuses["PutLogEvents"] = "InvalidParameterException"
	if _, ok := errors.AsType[*Refused](c.Put(t.Context(), to, "s", one)); !ok {
		t.Error("an invalid parameter is not for good")
	}
	s.refuses = map[string]string{"CreateLogStream": "InvalidParameterException"}
	if _, ok := errors.AsType[*Refused](c.Put(t.Context(), to, "a name that cannot be", one)); !ok {
		t.Error("a name that no log stream can have is not for good")
	}
	_, other, _ := newService(t)
	c = &CloudWatch{Endpoint: other.Endpoint, Region: "us-east-1", Authorities: c.Authorities, Role: c.Role}
	if err := os.WriteFile(c.Authorities, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Put(t.Context(), to, "s", one); err == nil || !strings.Contains(err.Error(), "has no certificate") {
		t.Error(err)
	}
}
