// SPDX-License-Identifier: Apache-2.0

package iampolicy

import (
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Facts are what a request carries besides its sender.
type Facts struct {
	Now         time.Time
	SourceIP    netip.Addr
	Secure      bool // over TLS
	UserAgent   string
	Region      string
	TokenIssued time.Time // of temporary credentials; zero for a long-lived key
	Tags        map[string]string
}

// NewContext makes the condition keys that follow from the caller and the connection. Add those of the action with
// small letters or any case.
func NewContext(c Caller, f Facts) map[string][]string {
	context := map[string][]string{}
	set := func(key, value string) {
		if value != "" {
			context[key] = []string{value}
		}
	}
	set("aws:currenttime", f.Now.UTC().Format(time.RFC3339))
	set("aws:epochtime", strconv.FormatInt(f.Now.Unix(), 10))
	set("aws:securetransport", strconv.FormatBool(f.Secure))
	set("aws:useragent", f.UserAgent)
	set("aws:requestedregion", f.Region)
	set("aws:viaawsservice", strconv.FormatBool(c.Service != ""))
	set("aws:principalisawsservice", strconv.FormatBool(c.Service != ""))
	if f.SourceIP.IsValid() {
		set("aws:sourceip", f.SourceIP.Unmap().WithZone("").String())
	}
	if c.Service != "" {
		set("aws:principalservicename", c.Service)
		return context
	}
	if c.Federated != "" {
		set("aws:federatedprovider", c.Federated)
		return context
	}
	set("aws:principalaccount", c.Account)
	set("aws:userid", c.ID)
	principal := c.ARN
	switch _, name, user := c.ARN.User(); {
	case user:
		set("aws:username", name)
		set("aws:principaltype", "User")
	case c.Session != "":
		set("aws:userid", c.ID+":"+c.Session)
		set("aws:principaltype", "AssumedRole")
		if principal = c.RoleARN; principal.IsZero() {
			principal, _ = c.ARN.Canonical()
		}
	default:
		set("aws:principaltype", "Account")
	}
	set("aws:principalarn", principal.String())
	if !f.TokenIssued.IsZero() {
		set("aws:tokenissuetime", f.TokenIssued.UTC().Format(time.RFC3339))
		set("aws:multifactorauthpresent", "false") // muster has no second factor; AWS leaves the key out for long-lived keys
	}
	for key, value := range f.Tags {
		context["aws:principaltag/"+strings.ToLower(key)] = []string{value}
	}
	return context
}
