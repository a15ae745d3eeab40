// SPDX-License-Identifier: Apache-2.0

package eksresource

import (
	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/cloud/awsresource"
)

// ReadTags checks the tags of a request.
func ReadTags(tags map[string]string) (v1alpha1.Tags, error) {
	read, err := awstag.Read(Service, awstag.Sorted(tags))
	return awsresource.KeptTags(read), err
}
