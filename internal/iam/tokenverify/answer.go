// SPDX-License-Identifier: Apache-2.0

package tokenverify

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"

	"muster.dev/muster/internal/iam/ststoken"
)

const (
	maxAnswer  = 64 << 10 // bytes; STS's have less than one KiB
	maxMessage = 300      // bytes of an error's message that are repeated
	maxCode    = 64
)

// errNotSTS is about an answer that no STS gives: asking again would not help.
var errNotSTS = errors.New("the answer is not STS's")

// answer is one of STS: an identity, or an error with a code.
type answer struct {
	ARN, Account, UserID string
	Status               int
	Code, Message        string
}

// document is the answer in JSON, and with other names in XML (STS's API reference, GetCallerIdentity; AWS's query
// protocol).
type document struct {
	Response struct {
		Result struct {
			Account string `xml:"Account"`
			ARN     string `json:"Arn"    xml:"Arn"`
			UserID  string `json:"UserId" xml:"UserId"`
		} `json:"GetCallerIdentityResult" xml:"GetCallerIdentityResult"`
	} `json:"GetCallerIdentityResponse"`
	Error struct {
		Code    string `xml:"Code"`
		Message string `xml:"Message"`
	}
}

// readAnswer reads what came back. An error is an answer that says nothing about the caller.
func readAnswer(r response) (answer, error) {
	if r.status >= 300 && r.status < 400 {
		return answer{}, fmt.Errorf("%w: it sends elsewhere (%s), where nobody goes", errNotSTS, http.StatusText(r.status))
	}
	d, ok := parseDocument(r.body)
	a := answer{
		Status: r.status, Code: clean(d.Error.Code, maxCode), Message: clean(d.Error.Message, maxMessage),
		ARN: d.Response.Result.ARN, Account: d.Response.Result.Account, UserID: d.Response.Result.UserID,
	}
	switch {
	case throttled(a):
		return a, nil
	case a.Status >= 500:
		return a, fmt.Errorf("it answers %s", a.said())
	case a.Status == http.StatusOK && ok && a.ARN != "" && a.Account != "" && a.UserID != "":
		return a, nil
	case a.Status >= 400 && ok && a.Code != "":
		return a, nil
	}
	return a, fmt.Errorf("%w: %s without what STS says with it", errNotSTS, a.said())
}

func (a answer) said() string {
	return strings.TrimSpace(fmt.Sprintf("status %d %s", a.Status, a.Code))
}

func parseDocument(raw []byte) (d document, ok bool) {
	if text := strings.TrimSpace(string(raw[:min(len(raw), 64)])); !strings.HasPrefix(text, "<") {
		return d, json.Unmarshal(raw, &d) == nil
	}
	var response struct {
		XMLName xml.Name
		document
		Result *struct {
			Account string `xml:"Account"`
			ARN     string `xml:"Arn"`
			UserID  string `xml:"UserId"`
		} `xml:"GetCallerIdentityResult"`
	}
	if xml.Unmarshal(raw, &response) != nil {
		return d, false
	}
	d.Error = response.Error
	if response.Result != nil && response.XMLName.Local == "GetCallerIdentityResponse" {
		d.Response.Result.Account, d.Response.Result.ARN, d.Response.Result.UserID = response.Result.Account, response.Result.ARN, response.Result.UserID
	}
	return d, true
}

// throttled reports whether STS does not want to answer now.
func throttled(a answer) bool {
	return a.Status == http.StatusTooManyRequests || a.Status != http.StatusOK &&
		(strings.Contains(a.Code, "Throttl") || a.Code == "RequestLimitExceeded" || a.Code == "TooManyRequestsException" || a.Code == "SlowDown")
}

// identity is what an answer says about a token.
func (a answer) identity(t ststoken.Token) (Identity, error) {
	switch {
	case throttled(a):
		return Identity{}, fmt.Errorf("%w: %s answers %d %s", ErrThrottled, t.Host, a.Status, a.Code)
	case a.Code != "":
		return Identity{}, &Refused{Rule: "sts", Code: a.Code, Saw: strings.TrimSpace(t.Host + " refused it: " + a.Message), Fix: fixOf(a.Code)}
	}
	p, err := principalOf(a.ARN, a.Account, a.UserID, t.Signed.AccessKeyID)
	if err != nil { // STS did answer, and others go on asking it
		return Identity{}, &Refused{Rule: "sts", Saw: fmt.Sprintf("%s confirms a principal that cannot be mapped: %v", t.Host, err)}
	}
	return Identity{Principal: p, ValidUntil: t.Expires, OutageUntil: t.Expires}, nil
}

// fixOf is what to do about an error of STS.
func fixOf(code string) string {
	switch code {
	case "SignatureDoesNotMatch":
		return "make the token for this cluster's name (the name is signed) and with the right secret key"
	case "InvalidClientTokenId":
		return "use an access key that exists and is active, and a region that the account has switched on"
	case "ExpiredToken", "ExpiredTokenException":
		return "get new credentials and make a new token"
	case "RequestExpired":
		return "make a new token, and set the clock of the machine that makes it"
	case "RegionDisabledException":
		return "switch STS on in that region, or make tokens for another"
	case "AccessDenied":
		return "look at the policies of the account: sts:GetCallerIdentity may be denied by none of them"
	}
	return ""
}

// clean makes one short line of a text that somebody else wrote. STS repeats the canonical request in some messages,
// which holds the session token, so nothing after its beginning is kept.
func clean(text string, most int) string {
	for _, end := range []string{"\n", "The Canonical String", "X-Amz-"} {
		text, _, _ = strings.Cut(text, end)
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != unicode.ReplacementChar {
			return r
		}
		return -1
	}, text)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return strings.TrimSpace(text)
}

// Throttled reports whether STS did not want to answer.
func (o Observation) Throttled() bool { return throttled(answer{Status: o.Status, Code: o.Code}) }
