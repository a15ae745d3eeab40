// SPDX-License-Identifier: Apache-2.0

package ec2instances

import (
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// cloud speaks EC2's query protocol.
type cloud struct {
	mu        sync.Mutex
	instances []instance
	page      int // instances on one
	calls     []url.Values
	// before may answer in its place.
	before func(call int, w http.ResponseWriter, r *http.Request) bool
}

type instance struct {
	id, private, state string
	rest               string // more XML
}

func newCloud(instances ...instance) *cloud { return &cloud{instances: instances, page: 1000} }

// serve makes it a server.
func (c *cloud) serve(t *testing.T) (endpoint string) {
	t.Helper()
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	return server.URL
}

// client asks it without a network, so that it can be asked in a bubble.
func (c *cloud) client() Describer {
	return clientOf(aws.Config{
		Region: "us-west-2", HTTPClient: direct{c},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret"}, nil
		}),
	}, "")
}

// direct is the way to a cloud that is not a server.
type direct struct{ to *cloud }

func (d direct) Do(r *http.Request) (response *http.Response, err error) {
	defer func() {
		if recover() != nil {
			err = io.ErrUnexpectedEOF
		}
	}()
	w := httptest.NewRecorder()
	d.to.ServeHTTP(w, r)
	return w.Result(), nil
}

func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, r.PostForm)
	if c.before != nil && c.before(len(c.calls), w, r) {
		return
	}
	if r.PostForm.Get("Action") != "DescribeInstances" || !strings.Contains(r.Header.Get("Authorization"), "/us-west-2/ec2/aws4_request") {
		refuse(w, http.StatusForbidden, "UnauthorizedOperation")
		return
	}
	var found []string
	for _, i := range c.instances {
		item := fmt.Sprintf(`<item><instanceId>%s</instanceId><instanceState><code>0</code><name>%s</name></instanceState>`+
			`<privateDnsName>%s</privateDnsName>%s</item>`, i.id, i.state, i.private, i.rest)
		matches, problem := matches(item, r.PostForm)
		if problem != "" {
			refuse(w, http.StatusBadRequest, problem)
			return
		}
		if matches {
			found = append(found, item)
		}
	}
	first := 0
	_, _ = fmt.Sscanf(r.PostForm.Get("NextToken"), "from-%d", &first)
	last := min(first+c.page, len(found))
	w.Header().Set("Content-Type", "text/xml")
	_, _ = fmt.Fprint(w, `<?xml version="1.0" encoding="UTF-8"?><DescribeInstancesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>r</requestId><reservationSet>`)
	for _, item := range found[first:last] {
		_, _ = fmt.Fprintf(w, `<item><reservationId>r-1</reservationId><instancesSet>%s</instancesSet></item>`, item)
	}
	_, _ = fmt.Fprint(w, `</reservationSet>`)
	if last < len(found) {
		_, _ = fmt.Fprintf(w, `<nextToken>from-%d</nextToken>`, last)
	}
	_, _ = fmt.Fprint(w, `</DescribeInstancesResponse>`)
}

// shown is what filters look at.
type shown struct {
	ID         string `xml:"instanceId"`
	Private    string `xml:"privateDnsName"`
	Public     string `xml:"dnsName"`
	Interfaces []struct {
		Addresses []struct {
			Private string `xml:"privateIpAddress"`
			Public  string `xml:"association>publicIp"`
		} `xml:"privateIpAddressesSet>item"`
		IPv6 []string `xml:"ipv6AddressesSet>item>ipv6Address"`
	} `xml:"networkInterfaceSet>item"`
}

// matches applies filters as EC2 does: all of them, and of each one of the values, as it is written, at any of the
// interfaces. There are 200 values at most.
func matches(item string, form url.Values) (all bool, problem string) {
	var i shown
	if err := xml.Unmarshal([]byte(item), &i); err != nil {
		return false, "InternalError"
	}
	have := map[string][]string{"private-dns-name": {i.Private}, "dns-name": {i.Public}, "instance-id": {i.ID}, "vpc-id": {"vpc-1"}}
	private, public, six := []string{}, []string{}, []string{}
	for _, n := range i.Interfaces {
		six = append(six, n.IPv6...)
		for _, a := range n.Addresses {
			private, public = append(private, a.Private), append(public, a.Public)
		}
	}
	have["network-interface.addresses.private-ip-address"] = private
	have["network-interface.addresses.association.public-ip"] = public
	have["network-interface.ipv6-addresses.ipv6-address"] = six
	all = true
	for n := 1; form.Get(fmt.Sprintf("Filter.%d.Name", n)) != ""; n++ {
		of, known := have[form.Get(fmt.Sprintf("Filter.%d.Name", n))]
		wanted := values(form, n)
		switch {
		case !known:
			return false, "InvalidParameterValue"
		case len(wanted) > 200:
			return false, "FilterLimitExceeded"
		}
		all = all && slices.ContainsFunc(wanted, func(v string) bool { return slices.ContainsFunc(of, stands(v)) })
	}
	return all, ""
}

// stands tells which texts a value stands for: * and ? are any.
func stands(value string) func(text string) bool {
	if !strings.ContainsAny(value, "*?") {
		return func(text string) bool { return text == value }
	}
	return regexp.MustCompile("^" + strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(value)) + "$").MatchString
}

func values(form url.Values, filter int) (all []string) {
	for n := 1; form.Has(fmt.Sprintf("Filter.%d.Value.%d", filter, n)); n++ {
		all = append(all, form.Get(fmt.Sprintf("Filter.%d.Value.%d", filter, n)))
	}
	return all
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?><Response><Errors><Error><Code>%s</Code><Message>of the cloud</Message></Error></Errors><RequestID>r</RequestID></Response>`, code)
}

func (c *cloud) called() []url.Values {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.calls)
}

// filtered returns what it was asked for, by the filter of each call and sorted.
func (c *cloud) filtered() []string {
	var all []string
	for _, call := range c.called() {
		all = append(all, call.Get("Filter.1.Name")+"="+strings.Join(values(call, 1), ","))
	}
	slices.Sort(all)
	return all
}

func (c *cloud) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}
