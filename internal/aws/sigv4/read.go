// SPDX-License-Identifier: Apache-2.0

package sigv4

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	algorithm  = "AWS4-HMAC-SHA256"
	dateLayout = "20060102T150405Z"

	maxSignedHeaders = 64
	maxAccessKeyID   = 128 // IAM API Reference, AccessKey
	maxExpires       = 7 * 24 * time.Hour
	maxSessionToken  = 16 << 10
)

// claim is what a request says of its signature, as text.
type claim struct{ algorithm, credential, date, expires, headers, token, signature string }

// ReadHeader reads the signature from the Authorization header. Errors are *Refusal.
func ReadHeader(r Request) (Signed, error) {
	c, refusal := fromHeader(r)
	if refusal != nil {
		return Signed{}, refusal
	}
	return c.signed(r, false)
}

// ReadPresigned reads the signature from the query. Errors are *Refusal.
func ReadPresigned(r Request) (Signed, error) {
	if n, _ := values(r.Header, "authorization"); n > 0 {
		return Signed{}, incomplete(RuleOnce, "an Authorization header beside the signature in the query", "send one of the two")
	}
	var stack [16]parameter
	query, refusal := readQuery(r.RawQuery, stack[:0])
	if refusal != nil {
		return Signed{}, refusal
	}
	c, refusal := fromQuery(query)
	if refusal != nil {
		return Signed{}, refusal
	}
	return c.signed(r, true)
}

func fromHeader(r Request) (c claim, _ *Refusal) {
	n, authorization := values(r.Header, "authorization")
	switch {
	case n == 0:
		return c, &Refusal{Code: CodeMissing, Rule: RuleMissing, Fix: "sign the request with AWS Signature Version 4"}
	case n > 1:
		return c, incomplete(RuleOnce, strconv.Itoa(n)+" Authorization headers", "send one")
	}
	var stack [16]parameter
	query, refusal := readQuery(r.RawQuery, stack[:0])
	if refusal != nil {
		return c, refusal
	}
	for _, p := range query {
		if field, exact := c.parameter(p.name); field != nil || exact {
			return c, incomplete(RuleOnce, quote(p.name)+" in the query beside an Authorization header", "send one of the two")
		}
	}
	if c, refusal = readAuthorization(authorization); refusal != nil {
		return c, refusal
	}
	if n, c.date = values(r.Header, "x-amz-date"); n != 1 {
		return c, incomplete(RuleDate, strconv.Itoa(n)+" X-Amz-Date headers", "send one")
	}
	if n, c.token = values(r.Header, "x-amz-security-token"); n > 1 || n == 1 && c.token == "" {
		return c, incomplete(RuleToken, strconv.Itoa(n)+" X-Amz-Security-Token headers, or an empty one", "send one, or none")
	}
	return c, nil
}

func readAuthorization(s string) (c claim, _ *Refusal) {
	var rest string
	c.algorithm, rest, _ = strings.Cut(s, " ")
	for more := true; more; {
		var one string
		one, rest, more = strings.Cut(rest, ",")
		name, value, _ := strings.Cut(strings.Trim(one, " "), "=")
		var field *string
		switch name {
		case "Credential":
			field = &c.credential
		case "SignedHeaders":
			field = &c.headers
		case "Signature":
			field = &c.signature
		}
		if field == nil || *field != "" || value == "" {
			return claim{}, incomplete(RuleAuthorization, "a field that is unknown, empty or there twice",
				"send "+algorithm+" Credential=ID/DATE/REGION/SERVICE/aws4_request, SignedHeaders=host;..., Signature=HEX")
		}
		*field = value
	}
	return c, nil
}

func fromQuery(query []parameter) (c claim, _ *Refusal) {
	for _, p := range query {
		field, exact := c.parameter(p.name)
		switch {
		case field == nil:
		case !exact:
			return c, incomplete(RuleQuery, "parameter "+quote(p.name), "spell it as AWS does, each word with a capital letter")
		case *field != "":
			return c, incomplete(RuleQuery, p.name+" twice", "send it once")
		case p.value == "":
			return c, incomplete(RuleQuery, p.name+" without a value", "give it one, or leave it out")
		default:
			*field = unescape(p.value)
		}
	}
	if c.signature == "" && c.credential == "" && c.algorithm == "" {
		return c, &Refusal{Code: CodeMissing, Rule: RuleMissing, Fix: "presign the request with AWS Signature Version 4"}
	}
	return c, nil
}

// parameter is the field of a claim that a parameter of the query is for, and whether its name is spelled as AWS does.
func (c *claim) parameter(name string) (field *string, exact bool) {
	const prefix = "X-Amz-"
	if len(name) < len(prefix) || !equalFold(name[:len(prefix)], prefix) {
		return nil, false
	}
	word := name[len(prefix):]
	switch {
	case equalFold(word, "Algorithm"):
		field, exact = &c.algorithm, word == "Algorithm"
	case equalFold(word, "Credential"):
		field, exact = &c.credential, word == "Credential"
	case equalFold(word, "Date"):
		field, exact = &c.date, word == "Date"
	case equalFold(word, "Expires"):
		field, exact = &c.expires, word == "Expires"
	case equalFold(word, "SignedHeaders"):
		field, exact = &c.headers, word == "SignedHeaders"
	case equalFold(word, "Security-Token"):
		field, exact = &c.token, word == "Security-Token"
	case equalFold(word, "Signature"):
		field, exact = &c.signature, word == "Signature"
	}
	return field, exact && name[:len(prefix)] == prefix
}

// signed checks each part of a claim.
func (c *claim) signed(r Request, presigned bool) (Signed, error) {
	s := Signed{Presigned: presigned, SessionToken: c.token}
	if c.algorithm != algorithm {
		return Signed{}, incomplete(RuleAlgorithm, quote(c.algorithm), "sign with "+algorithm)
	}
	var ok bool
	if s.Credential, ok = readCredential(c.credential); !ok {
		return Signed{}, incomplete(RuleCredential, quote(c.credential),
			"send ID/DATE/REGION/SERVICE/aws4_request, as 20150830/us-east-1/sts/aws4_request")
	}
	if s.Headers, ok = readSignedHeaders(c.headers); !ok {
		return Signed{}, incomplete(RuleSignedHeaders, quote(c.headers),
			"name each signed header once, in lower case and sorted, with a semicolon between, host among them")
	}
	if s.SignedAt, ok = readDate(c.date); !ok {
		return Signed{}, incomplete(RuleDate, quote(c.date), "send X-Amz-Date as 20150830T123600Z")
	}
	if c.date[:8] != s.Date {
		return Signed{}, mismatch(RuleCredential, quote(s.Date)+" for a request of "+c.date,
			"sign with the day of X-Amz-Date in the credential's scope")
	}
	if presigned {
		if s.Expires, ok = readExpires(c.expires); !ok {
			return Signed{}, incomplete(RuleExpires, quote(c.expires), "send X-Amz-Expires in seconds, from 0 to 604800")
		}
	} else if !s.signs("x-amz-date") {
		return Signed{}, incomplete(RuleSignedHeaders, "no x-amz-date", "sign the header X-Amz-Date")
	}
	if len(c.token) > maxSessionToken || !all(c.token, isGraphic) {
		return Signed{}, incomplete(RuleToken, "one that is too long or has other than visible ASCII characters", "send the session token unchanged")
	}
	if !isHash(c.signature) {
		return Signed{}, incomplete(RuleSignature, "one that is malformed", "send 64 hex digits in lower case")
	}
	for i := range s.signature {
		high, _ := unhex(c.signature[2*i])
		low, _ := unhex(c.signature[2*i+1])
		s.signature[i] = high<<4 | low
	}
	for name := range r.Header {
		if len(name) > 6 && equalFold(name[:6], "x-amz-") && !s.signs(name) {
			return Signed{}, mismatch(RuleSignedHeaders, "header "+quote(name)+" that is not signed", "sign every X-Amz- header that is sent")
		}
	}
	return s, nil
}

// signs reports whether a header is signed, whose name may be in any case.
func (s *Signed) signs(name string) bool {
	return slices.ContainsFunc(s.Headers, func(signed string) bool { return equalFold(signed, name) })
}

func readCredential(s string) (c Credential, ok bool) {
	var last string
	if c.AccessKeyID, s, ok = strings.Cut(s, "/"); ok {
		if c.Date, s, ok = strings.Cut(s, "/"); ok {
			if c.Region, s, ok = strings.Cut(s, "/"); ok {
				c.Service, last, ok = strings.Cut(s, "/")
			}
		}
	}
	return c, ok && last == terminator && isKeyID(c.AccessKeyID) && isWord(c.Date) && isWord(c.Region) && isWord(c.Service)
}

func readSignedHeaders(s string) ([]string, bool) {
	n := strings.Count(s, ";") + 1
	if n > maxSignedHeaders {
		return nil, false
	}
	names, host := make([]string, 0, n), false
	for more := true; more; {
		var name string
		name, s, more = strings.Cut(s, ";")
		if !isHeaderName(name) || len(names) > 0 && names[len(names)-1] >= name {
			return nil, false
		}
		host = host || name == "host"
		names = append(names, name)
	}
	return names, host
}

// readDate reads 20150830T123600Z and no other spelling; time.Parse would let fractions of a second through.
func readDate(s string) (time.Time, bool) {
	if len(s) != len(dateLayout) {
		return time.Time{}, false
	}
	t, err := time.Parse(dateLayout, s)
	var again [len(dateLayout)]byte
	return t, err == nil && string(t.AppendFormat(again[:0], dateLayout)) == s
}

func readExpires(s string) (time.Duration, bool) {
	n, err := strconv.ParseUint(s, 10, 31)
	d := time.Duration(n) * time.Second
	return d, err == nil && d <= maxExpires && (s == "0" || s[0] != '0')
}
