// SPDX-License-Identifier: Apache-2.0

package policy

// checkShape refuses bytes that cannot be read in exactly one way: see package pki for what that takes.
func checkShape(e evaluation) outcome {
	if err := e.request.ParseError; err != nil {
		return refuse("", "%v", err)
	}
	if e.request.CSR.CommonName() == "" {
		return refuse("", "the request was not read")
	}
	if other := e.request.CSR.OtherAttributes(); e.profile.Node && len(other) > 0 {
		return refuse("a node's has a common name and an organization", "the subject has %q", other)
	}
	return pass("one request with a valid signature of its own")
}
