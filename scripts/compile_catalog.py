"""Write src/gpufabric/catalog/compiled.json anew after device files have changed."""

from __future__ import annotations

from pathlib import Path

from gpufabric.catalog import compiled
from gpufabric.core.files import write_text


def main() -> None:
    """Compile the packaged device files."""
    target = Path(compiled.__file__).with_name("compiled.json")
    write_text(target, compiled.compiled_text(compiled.device_files()))
    print(target)


if __name__ == "__main__":
    main()
