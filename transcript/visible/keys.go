package visible

import "strings"

// keySet holds names in lower case.
type keySet map[string]bool

// keys spells out names: a dot in one may be a hyphen, an underscore or
// nothing.
func keys(lists ...string) keySet {
	set := keySet{}
	var add func(done, todo string)
	add = func(done, todo string) {
		head, rest, dotted := strings.Cut(todo, ".")
		if !dotted {
			set[done+todo] = true
			return
		}
		for _, sep := range []string{"", "-", "_"} {
			add(done+head+sep, rest)
		}
	}
	for _, list := range lists {
		for _, name := range strings.Fields(list) {
			add("", name)
		}
	}
	return set
}

const (
	paymentNames = "card.number card.cvc card.cvv cvc cvv security.code payment.credential shared.payment.token"
	queryNames   = "access.token auth.token hook.token refresh.token id.token api.key client.secret app.secret private.key" +
		" credential authorization token key secret password pass passwd auth jwt session code signature" +
		" x.amz.signature x.amz.security.token"
)

// The names whose values are secrets, by the place they stand in.
var (
	queryKeys  = keys(queryNames, paymentNames)
	assignKeys = keys("access_token refresh_token id_token auth.token hook.token api.key client.secret app.secret private.key"+
		" authorization jwt token secret password pass passwd credential", paymentNames)
	jsonKeys = keys("apikey api_key apitoken api_token bearertoken bearer_token token secret password passwd credential" +
		" authorization accesstoken access_token refreshtoken refresh_token idtoken id_token authtoken auth_token" +
		" clientsecret client_secret privatekey private_key secret_value raw_secret secret_input key_material" +
		" cardnumber card_number cardcvc card_cvc cardcvv card_cvv cvc cvv securitycode security_code" +
		" paymentcredential payment_credential sharedpaymenttoken shared_payment_token")
	looseKeys = union(dashes("api-key access-token refresh-token id-token secret-value raw-secret secret-input key-material private-key client-secret app-secret auth-token"),
		keys("authtoken clientsecret appsecret credential authorization"))
	headerKeys = keys("authorization proxy-authorization cookie set-cookie x-api-key x-auth-token")
	flagKeys   = keys("api.key hook.token access.token refresh.token id.token token secret password passwd credential"+
		" private.key client.secret", paymentNames)
	bodyKeys = keys("access_token auth_token hook_token refresh_token id_token token api_key apikey client_secret app_secret" +
		" password pass passwd auth jwt session code signature x_amz_signature x_amz_security_token secret credential" +
		" private_key authorization key card_number card_cvc card_cvv cvc cvv security_code payment_credential" +
		" shared_payment_token")
)

// dashes spells names whose hyphen may be an underscore but not missing.
func dashes(list string) keySet {
	set := keySet{}
	for _, name := range strings.Fields(list) {
		set[name] = true
		set[strings.ReplaceAll(name, "-", "_")] = true
	}
	return set
}

func union(a, b keySet) keySet {
	for k := range b {
		a[k] = true
	}
	return a
}

// longestKey is longer than any name.
const longestKey = 24

func nameByte(c byte) bool {
	c |= 0x20
	return c >= 'a' && c <= 'z'
}

func keyByte(c byte) bool { return nameByte(c) || c == '-' || c == '_' }

// has tells whether the text is one of the names, in any case.
func (k keySet) has(name string) bool {
	if len(name) == 0 || len(name) > longestKey {
		return false
	}
	var buf [longestKey]byte
	for i := range len(name) {
		buf[i] = lower(name[i])
	}
	return k[string(buf[:len(name)])]
}

// keyBefore is where the name that ends at i begins; it may be longer than any
// name by one.
func keyBefore(s string, i int) int {
	j := i
	for j > 0 && i-j <= longestKey && keyByte(s[j-1]) {
		j--
	}
	return j
}

// keyAfter is where the name that begins at i ends.
func keyAfter(s string, i int) int {
	j := i
	for j < len(s) && j-i <= longestKey && keyByte(s[j]) {
		j++
	}
	return j
}
