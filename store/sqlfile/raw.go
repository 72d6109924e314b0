package sqlfile

import (
	"encoding/binary"
	"math"
	"unsafe"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// handle is a connection as the engine knows it. The driver has it and does not give it out, but for the data of its pre-update hook, which
// begins with it. It is wanted for two things: the driver cuts a text at a NUL byte when it copies a row in that hook, and it has no way to
// let triggers rest.
type handle struct {
	tls *libc.TLS
	db  uintptr
}

// The exported fields of the hook's data follow right after the handle; a driver that lays them out otherwise does not compile.
var _ = [1]struct{}{}[unsafe.Offsetof(sqlite.SQLitePreUpdateData{}.Op)-unsafe.Sizeof(handle{})]

func handleOf(d *sqlite.SQLitePreUpdateData) handle { return *(*handle)(unsafe.Pointer(d)) }

// appendOld appends the values of the row that is about to be changed.
func (h handle) appendOld(b []byte, columns int) ([]byte, error) {
	slot := libc.Xmalloc(h.tls, types.Size_t(unsafe.Sizeof(uintptr(0))))
	if slot == 0 {
		return b, errMemory
	}
	defer libc.Xfree(h.tls, slot)
	for i := range columns {
		if rc := lib.Xsqlite3_preupdate_old(h.tls, h.db, int32(i), slot); rc != lib.SQLITE_OK {
			return b, errMemory
		}
		v := *(*uintptr)(outside(slot))
		switch lib.Xsqlite3_value_type(h.tls, v) {
		case lib.SQLITE_INTEGER:
			b = binary.AppendVarint(append(b, tagInt), lib.Xsqlite3_value_int64(h.tls, v))
		case lib.SQLITE_FLOAT:
			b = binary.BigEndian.AppendUint64(append(b, tagReal), math.Float64bits(lib.Xsqlite3_value_double(h.tls, v)))
		case lib.SQLITE_TEXT:
			p := lib.Xsqlite3_value_text(h.tls, v)
			b = appendRaw(append(b, tagText), p, lib.Xsqlite3_value_bytes(h.tls, v))
		case lib.SQLITE_BLOB:
			p := lib.Xsqlite3_value_blob(h.tls, v)
			b = appendRaw(append(b, tagBlob), p, lib.Xsqlite3_value_bytes(h.tls, v))
		default:
			b = append(b, tagNull)
		}
	}
	return b, nil
}

func appendRaw(b []byte, p uintptr, n int32) []byte {
	b = binary.AppendUvarint(b, uint64(n))
	if n == 0 || p == 0 {
		return b
	}
	return append(b, unsafe.Slice((*byte)(outside(p)), n)...)
}

// outside is a place in the engine's memory, which is none of Go's.
func outside(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// triggers lets all triggers of the connection rest, or work again. Statements that are prepared already keep theirs.
func (h handle) triggers(on bool) error {
	v := int32(0)
	if on {
		v = 1
	}
	args := libc.Xmalloc(h.tls, 16)
	if args == 0 {
		return errMemory
	}
	defer libc.Xfree(h.tls, args)
	if rc := lib.Xsqlite3_db_config(h.tls, h.db, lib.SQLITE_DBCONFIG_ENABLE_TRIGGER, libc.VaList(args, v, uintptr(0))); rc != lib.SQLITE_OK {
		return errMemory
	}
	return nil
}
